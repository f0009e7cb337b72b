//! Fractal heaps: dense links and attributes, and shared messages (format specification 4.0, III.G).

mod blocks;
mod doubling_table;
mod header;
mod id;

pub use blocks::{FractalHeapDirectBlock, FractalHeapIndirectBlock};
pub use doubling_table::{DoublingTable, HeapBlockSlot};
pub use header::{FractalHeapFilterInfo, FractalHeapHeader};
pub use id::{FractalHeapId, FractalHeapIdFormat, HeapObjectLocation};

#[cfg(test)]
mod tests;
