//! Every durable or mapped byte of Superko: the mapped table and the RocksDB store. `FORMAT.md` describes each byte.
// Without the store some of the table is not asked for.
#![cfg_attr(not(feature = "store"), allow(dead_code))]

#[cfg(feature = "store")]
mod codec;
#[cfg(feature = "store")]
mod inspect;
mod layout;
mod sealed;
mod sets;
#[cfg(feature = "store")]
mod store;
mod table;
mod words;

#[cfg(feature = "store")]
pub use inspect::{Content, Found, Inspector};
#[cfg(feature = "store")]
pub use store::{
    CampaignRecord, CheckpointRecord, CheckpointReport, FamilyGauges, JobRecord, LOCK_FILE, PendingCheckpoint, ProofRecord, RESTORE_PART,
    RestoreReport, Store, StoreError, StoreGauges, StoreTable, disk_free_bytes, lock_directory,
};
pub use table::{MappedTable, TableError, TableOccupancy, TableOrigin};

/// The rules under which everything stored was proven; part of every header.
pub const RULES_TEXT: &str = "area score; no suicide; positional superko over all earlier boards; two passes end the game";
