//! Objects of global heaps: variable-length data, mappings of virtual datasets, regions.

use h5live_cache::Owner;
use h5live_format::{Addr, GlobalHeapCollection, GlobalHeapId, decode};

use crate::session::Session;
use crate::{Error, Result};

/// Most bytes of one global heap collection.
const MAX_COLLECTION: u64 = 1 << 32;

impl Session {
    /// The bytes of an object of a global heap.
    ///
    /// # Errors
    /// If the collection cannot be read, or has no such object.
    pub fn heap_object(&self, place: GlobalHeapId) -> Result<Vec<u8>> {
        let at = place.collection;
        self.patience.retry(|| {
            // Collections have no owner whose reading anew would evict them, so who follows a writer keeps none.
            let found = if self.follows() {
                self.read_collection(at)?.get(place.index).map(<[u8]>::to_vec)
            } else {
                let collection = self.cache.load(at, Owner::new(at), || self.read_collection(at))?;
                let collection = collection.read();
                collection.get(place.index).map(<[u8]>::to_vec)
            };
            found.ok_or(Error::Object { header: at, rule: "a collection of a global heap has what is referred to" })
        })
    }

    fn read_collection(&self, at: Addr) -> h5live_cache::Result<GlobalHeapCollection> {
        let widths = self.cache.widths();
        let wrong = |source| h5live_cache::Error::Decode { at, source };
        let start = self.cache.read_block(at, GlobalHeapCollection::PREFIX)?;
        let size = GlobalHeapCollection::stated_size(&start, widths).map_err(wrong)?;
        let wanted = usize::try_from(size.min(MAX_COLLECTION)).unwrap_or(usize::MAX);
        let bytes = self.cache.read_block(at, wanted)?;
        decode(&bytes, widths).map_err(wrong)
    }
}
