//! Filters 32001 and 32026, Blosc and Blosc2: blocks of shuffled and compressed bytes.

mod b2nd_layout;
mod blosc1;
mod blosc2;
mod chunk;
mod codec;
mod encode;
mod frame;
mod msgpack;

pub(crate) use blosc1::Blosc;
pub(crate) use blosc2::Blosc2;

use h5live_model::Datatype;

/// Filters of a block before compression, by their numbers.
const NO_FILTER: u8 = 0;
const SHUFFLE: u8 = 1;
const BIT_SHUFFLE: u8 = 2;
const DELTA: u8 = 3;
const TRUNCATE: u8 = 4;
/// As of c-blosc2 2.10; what earlier releases wrote has the number 34, and is another one.
const BYTE_DELTA: u8 = 35;

/// The level, the filter and the codec, when the parameters do not say.
const DEFAULT_LEVEL: u32 = 5;
const DEFAULT_FILTER: u32 = SHUFFLE as u32;
const DEFAULT_CODEC: u32 = 0;

/// The size that elements are shuffled by: that of the elements of an array, not of the array.
fn base_size(datatype: &Datatype) -> u32 {
    match datatype {
        Datatype::Array(array) => array.base.size(),
        other => other.size(),
    }
}
