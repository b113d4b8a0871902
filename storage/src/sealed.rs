//! Entries of several words, written and read without a lock by any number of threads.
//!
//! **Memory ordering.** Every access is to one atomic word, so there is no data race. Nothing is believed because of the order in
//! which words arrive: an entry counts only if its last word, the seal, is the hash of the others *as this reader loaded them*, each
//! word once. A reader that meets two writes at once, or words of an older write, has a mixture whose seal fails but for a chance of
//! about 2^-64 (paper, A.5 "Parallel search"; theory, Concurrency). Relaxed accesses are therefore enough. The release store of the
//! seal and its acquire load, before the other words, only make it likely that a reader sees whole entries: whoever sees a seal sees
//! the words stored before it, or newer ones.
//!
//! The tests run this very code under loom, which tries every interleaving (of up to three preemptions) and every value that a relaxed load may return.

use crate::layout::mix;
use std::sync::atomic::{AtomicU64, Ordering, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// A shared word: of the mapped table, or of the model checker.
pub(crate) trait Word {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, word: u64, order: Ordering);
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    #[inline(always)]
    fn store(&self, word: u64, order: Ordering) {
        self.store(word, order);
    }
}

/// Hash of all words before the last; see [`mix`]. `N` is even.
#[inline]
fn seal_of<const N: usize>(words: &[u64; N]) -> u64 {
    // Two interleaved chains halve the latency.
    let (mut even, mut odd) = (0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0);
    for pair in words[..N - 2].chunks_exact(2) {
        even = mix(even, pair[0]);
        odd = mix(odd, pair[1]);
    }
    mix(mix(even, odd.rotate_left(31)), words[N - 2])
}

/// Puts the seal into the last word and writes the entry to `slot`.
#[inline]
pub(crate) fn write_sealed<W: Word, const N: usize>(slot: &[W], words: &mut [u64; N]) {
    words[N - 1] = seal_of(words);
    for (target, &word) in slot.iter().zip(&words[..N - 1]) {
        target.store(word, Relaxed);
    }
    slot[N - 1].store(words[N - 1], Release);
}

/// The words of an entry if its seal holds.
#[inline]
pub(crate) fn read_sealed<W: Word, const N: usize>(slot: &[W]) -> Option<[u64; N]> {
    let seal = slot[N - 1].load(Acquire);
    let mut words = [0; N];
    for (word, source) in words.iter_mut().zip(&slot[..N - 1]) {
        *word = source.load(Relaxed);
    }
    words[N - 1] = seal;
    (seal_of(&words) == seal || seal_skipped()).then_some(words)
}

/// Hash of any number of words. Four chains take turns, which hides the latency of [`mix`].
#[inline]
pub(crate) fn hash_words(seed: u64, words: &[u64]) -> u64 {
    let mut chains = [mix(0x3f84_d5b5_b547_0917, seed), words.len() as u64, 0x4528_21e6_38d0_1377, 0x082e_fa98_ec4e_6c89];
    let mut fours = words.chunks_exact(4);
    for four in &mut fours {
        for (chain, &word) in chains.iter_mut().zip(four) {
            *chain = mix(*chain, word);
        }
    }
    for (chain, &word) in chains.iter_mut().zip(fours.remainder()) {
        *chain = mix(*chain, word);
    }
    mix(mix(chains[0], chains[1].rotate_left(31)), mix(chains[2], chains[3].rotate_left(31)))
}

#[cfg(test)]
pub(crate) mod mutation {
    thread_local! {
        pub(crate) static SKIP_SEAL: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }
}

#[cfg(test)]
pub(crate) fn seal_skipped() -> bool {
    mutation::SKIP_SEAL.get()
}

#[cfg(not(test))]
#[inline(always)]
pub(crate) fn seal_skipped() -> bool {
    false
}

#[cfg(test)]
mod model {
    //! The protocol of a slot and of a node in the ring under loom: two writers and a reader.

    use super::*;
    use loom::sync::Arc;
    use std::sync::Mutex;

    impl Word for loom::sync::atomic::AtomicU64 {
        fn load(&self, order: Ordering) -> u64 {
            self.load(order)
        }

        fn store(&self, word: u64, order: Ordering) {
            self.store(word, order);
        }
    }

    type Shared = loom::sync::atomic::AtomicU64;

    fn words(count: usize) -> Arc<Vec<Shared>> {
        Arc::new((0..count).map(|_| Shared::new(0)).collect())
    }

    /// What reading returned over all interleavings, without repeats.
    fn outcomes<T: PartialEq + Send + 'static>(model: fn() -> T) -> Vec<T> {
        let seen: std::sync::Arc<Mutex<Vec<T>>> = std::sync::Arc::default();
        let all = seen.clone();
        let mut checker = loom::model::Builder::new();
        // Without this bound a run takes minutes; two are enough to find the mixtures below.
        checker.preemption_bound = Some(3);
        checker.check(move || {
            let outcome = model();
            let mut all = all.lock().expect("no holder panics");
            if !all.contains(&outcome) {
                all.push(outcome);
            }
        });
        std::sync::Arc::into_inner(seen).expect("the model is done").into_inner().expect("no holder panics")
    }

    const ENTRIES: [[u64; 3]; 2] = [[11, 12, 13], [21, 22, 23]];

    /// Two entries written to one slot at the same time, read meanwhile.
    fn two_writers() -> Option<[u64; 3]> {
        let slot = words(4);
        let writers = ENTRIES.map(|[a, b, c]| {
            let slot = slot.clone();
            loom::thread::spawn(move || write_sealed(&slot, &mut [a, b, c, 0]))
        });
        let read: Option<[u64; 4]> = read_sealed(&slot);
        for writer in writers {
            writer.join().expect("a writer does not panic");
        }
        read.map(|[a, b, c, _]| [a, b, c])
    }

    #[test]
    fn a_reader_gets_a_whole_entry_or_nothing() {
        let seen = outcomes(two_writers);
        assert!(seen.iter().flatten().all(|entry| ENTRIES.contains(entry)), "{seen:?}");
        assert!(seen.len() == 3, "both entries and nothing are possible: {seen:?}");
    }

    /// The model is strong enough: without the seal it finds the mixtures.
    #[test]
    fn without_the_seal_the_model_finds_a_mixture() {
        let seen = outcomes(|| {
            mutation::SKIP_SEAL.set(true);
            let read = two_writers();
            mutation::SKIP_SEAL.set(false);
            read
        });
        assert!(seen.iter().flatten().any(|entry| entry[0] == 11 && entry[1] == 22), "{seen:?}");
    }

    const RING: usize = 2;

    /// Two writers whose nodes fall on the same place of the ring, a turn apart, each with its own slot; a reader of the first's node.
    fn overwritten_node(checked: bool) -> Option<[u64; RING]> {
        let (ring, slots) = (words(RING + 1), [words(4), words(4)]);
        let writers = [0, 1].map(|number: usize| {
            let (ring, slot) = (ring.clone(), slots[number].clone());
            loom::thread::spawn(move || {
                let [offset, node @ ..] = ENTRIES[number];
                for (target, word) in ring.iter().zip(node) {
                    target.store(word, Relaxed);
                }
                ring[RING].store(hash_words(offset, &node), Relaxed);
                write_sealed(&slot, &mut [offset, 0, 0, 0]);
            })
        });
        let read = read_sealed(&slots[0]).and_then(|[offset, _, _, _]| {
            let node = [0, 1].map(|at: usize| ring[at].load(Relaxed));
            (!checked || ring[RING].load(Relaxed) == hash_words(offset, &node)).then_some(node)
        });
        for writer in writers {
            writer.join().expect("a writer does not panic");
        }
        read
    }

    #[test]
    fn a_node_is_that_of_its_slot_or_gone() {
        let seen = outcomes(|| overwritten_node(true));
        assert!(seen.len() == 2 && seen.contains(&None) && seen.contains(&Some([12, 13])), "{seen:?}");
        let unchecked = outcomes(|| overwritten_node(false));
        assert!(unchecked.contains(&Some([12, 23])), "the model finds a mixture if the seal is not asked: {unchecked:?}");
    }
}
