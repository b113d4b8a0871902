//! A mapping seen as atomic words: the only `unsafe` of the project.

use memmap2::MmapMut;
use std::fs::File;
use std::io;
use std::sync::atomic::AtomicU64;

/// An anonymous or file-backed mapping of 64-bit words that threads share.
#[derive(Debug)]
pub(crate) struct Words {
    map: MmapMut,
}

impl Words {
    /// Zeroed memory of `bytes` bytes, a multiple of eight.
    pub fn anonymous(bytes: usize) -> io::Result<Words> {
        let map = MmapMut::map_anon(bytes)?;
        // Probes jump all over the table, so small pages cost an address translation each; a kernel without huge pages may refuse.
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Words { map })
    }

    /// Maps a whole file, whose blocks are allocated (a hole would raise SIGBUS on a full disk).
    pub fn file(file: &File) -> io::Result<Words> {
        // SAFETY: The data-directory lock keeps other instances away, the file is private to this one and never truncated while
        // mapped, and every access goes through atomics, so a foreign write could yield wrong values but no undefined behaviour;
        // values are believed only behind a seal.
        let map = unsafe { MmapMut::map_mut(file)? };
        Ok(Words { map })
    }

    /// The words.
    #[inline]
    pub fn all(&self) -> &[AtomicU64] {
        // SAFETY: The mapping is page-aligned, lives as long as `self`, and is only ever accessed as atomic words; the length is
        // rounded down to whole words. AtomicU64 has the size and the alignment of u64 and allows shared mutation.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast::<AtomicU64>(), self.map.len() / 8) }
    }

    /// Hints that the cache line of the word at `index` will be read soon.
    #[inline]
    pub fn prefetch(&self, index: usize) {
        let word = std::ptr::from_ref(&self.all()[index]);
        // SAFETY: The instruction has no effect that a program can observe, whatever the address; this one is in the mapping.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(word.cast::<i8>());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = word;
    }

    /// Writes everything back to the file and waits for the disk.
    pub fn flush(&self) -> io::Result<()> {
        self.map.flush()
    }

    /// Writes the first `bytes` back and waits for the disk.
    pub fn flush_start(&self, bytes: usize) -> io::Result<()> {
        self.map.flush_range(0, bytes)
    }
}
