//! Multidimensional chunks: blocks of a shape of their own, in row-major order, those at the edges padded.

use super::chunk::{BlockBuffers, BloscChunk};
use super::msgpack::{read_int32, read_int64};
use crate::FilterFault;
use crate::byte_reader::ByteReader;
use crate::scratch::zeroed;

/// The highest rank of a grid.
const MAX_RANK: u8 = 16;

/// The shape of an array in one chunk, and of its blocks (elements).
pub(super) struct B2ndLayout {
    shape: Vec<usize>,
    block: Vec<usize>,
}

/// Steps a position through a shape in row-major order; says whether there is a next one.
fn advance(position: &mut [usize], shape: &[usize]) -> bool {
    for (at, dim) in position.iter_mut().zip(shape).rev() {
        *at += 1;
        if *at < *dim {
            return true;
        }
        *at = 0;
    }
    false
}

fn product(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d))
}

impl B2ndLayout {
    /// Reads the metadata "b2nd": an array of the version, the rank, the shape (8 bytes each), the shapes of a
    /// chunk and of a block (4 bytes each), and the type of an element, which is not needed.
    pub fn parse(content: &[u8]) -> Result<Self, FilterFault> {
        let mut reader = ByteReader(content);
        reader.bytes(2)?;
        let rank = reader.byte()?;
        let array = |reader: &mut ByteReader<'_>| match reader.byte()? {
            // The reference filter goes beyond the 15 elements that this type of MessagePack has.
            byte if rank <= MAX_RANK && byte == 0x90 + rank => Ok(()),
            _ => Err(FilterFault::Corrupt("shape")),
        };
        array(&mut reader)?;
        let shape = (0..rank).map(|_| read_int64(&mut reader)).collect::<Result<Vec<_>, _>>()?;
        array(&mut reader)?;
        let chunk = (0..rank).map(|_| read_int32(&mut reader)).collect::<Result<Vec<_>, _>>()?;
        array(&mut reader)?;
        let block = (0..rank).map(|_| read_int32(&mut reader)).collect::<Result<Vec<_>, _>>()?;
        if shape != chunk {
            return Err(FilterFault::Unsupported("a frame of several chunks"));
        }
        if rank == 0 || block.iter().zip(&shape).any(|(block, dim)| *block == 0 || block > dim) {
            return Err(FilterFault::Corrupt("shape"));
        }
        Ok(B2ndLayout { shape, block })
    }

    /// Bytes of the array.
    pub fn array_bytes(&self, element_size: usize) -> Option<usize> {
        product(&self.shape)?.checked_mul(element_size)
    }

    /// Puts the blocks of a chunk into their places. The output has the size of the array.
    pub fn decode(
        &self,
        chunk: &BloscChunk<'_>,
        element_size: usize,
        output: &mut [u8],
        buffers: &mut BlockBuffers<'_>,
    ) -> Result<(), FilterFault> {
        let grid: Vec<usize> = self.shape.iter().zip(&self.block).map(|(dim, block)| dim.div_ceil(*block)).collect();
        // No block is larger than the array, so that this is no more than the output.
        let bytes = product(&self.block).and_then(|elements| elements.checked_mul(element_size));
        let bytes = bytes.filter(|bytes| *bytes <= output.len()).ok_or(FilterFault::Corrupt("shape"))?;
        let all = product(&grid).and_then(|blocks| blocks.checked_mul(bytes));
        if chunk.block_bytes != bytes || all != Some(chunk.decoded_bytes) {
            return Err(FilterFault::Corrupt("size of a chunk"));
        }
        let mut block = zeroed(bytes).ok_or(FilterFault::OutOfMemory(bytes))?;
        let mut position = vec![0; grid.len()];
        for index in 0.. {
            chunk.decode_block_in_order(index, &mut block, buffers)?;
            self.copy_block(&position, &block, element_size, output);
            if !advance(&mut position, &grid) {
                break;
            }
        }
        Ok(())
    }

    /// Copies the rows of a block that lie within the array.
    fn copy_block(&self, position: &[usize], block: &[u8], size: usize, output: &mut [u8]) {
        let (Some(row_block), Some(row)) = (self.block.last(), self.shape.last()) else { return };
        let mut inner = vec![0; position.len()];
        for from in block.chunks_exact(row_block * size) {
            let start: Vec<usize> =
                position.iter().zip(&self.block).zip(&inner).map(|((p, block), i)| p * block + i).collect();
            if start.iter().zip(&self.shape).all(|(at, dim)| at < dim) {
                let at = start.iter().zip(&self.shape).fold(0, |at, (i, dim)| at * dim + i);
                let length = (*row_block).min(row - start.last().copied().unwrap_or_default()) * size;
                if let (Some(to), Some(from)) = (output.get_mut(at * size..at * size + length), from.get(..length)) {
                    to.copy_from_slice(from);
                }
            }
            // The next row: the last dimension stays at zero.
            let outer = self.block.len() - 1;
            if let (Some(inner), Some(block)) = (inner.get_mut(..outer), self.block.get(..outer)) {
                advance(inner, block);
            }
        }
    }
}
