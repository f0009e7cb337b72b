//! The check of the spaces of long keys: each has keys, and exactly one key leads to it.

use h5live_model::AllocationLimit;

use super::KeySpan;
use super::long_keys::{LongKeyViewPair, NEXT_SPACE, SPACE_PREFIX_BYTES, SPACE_TAG, read_number};

/// What is wrong with long keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LongKeyFault {
    /// A key that is none.
    #[error("a key of {0} bytes is neither a key nor one that leads to a space of long keys")]
    MalformedKeyOfLen(usize),
    /// The number of a space is none.
    #[error("a key that leads to a space of long keys has no number of 8 bytes")]
    MalformedSpaceNumber,
    /// A space has no keys.
    #[error("a key leads to the space {0} of long keys, which has none")]
    EmptySpace(u64),
    /// No key leads to a space.
    #[error("no key leads to the space {0} of long keys")]
    UnreachableSpace(u64),
    /// Two keys lead to a space.
    #[error("two keys lead to the space {0} of long keys")]
    SharedSpace(u64),
    /// A space has a number that is still to be given.
    #[error("the space {space} of long keys is not below {next}, which is to be made next")]
    UnreservedSpace {
        /// The space.
        space: u64,
        /// The number of the next one.
        next: u64,
    },
}

/// The spaces of a state.
#[derive(Debug, Default)]
struct Spaces {
    /// The number of the next one.
    next: u64,
    /// Those that have keys, in order.
    found: Vec<u64>,
    /// Where keys lead to, and the space in which they are; `None` for keys in no space.
    leads: Vec<(u64, Option<u64>)>,
    faults: Vec<LongKeyFault>,
}

impl LongKeyViewPair {
    /// Calls `each` with each fault of long keys, until it returns `false`. It takes 32 bytes of memory for each space.
    ///
    /// # Errors
    /// Those of the engine; an allocation error if there are too many spaces for the limit.
    pub fn check_long_key_spaces(
        &self,
        limit: AllocationLimit,
        each: &mut dyn FnMut(LongKeyFault) -> bool,
    ) -> h5live_model::Result<()> {
        let mut spaces = Spaces::default();
        let mut too_many = Ok(());
        self.inner.scan(&KeySpan::all(), &mut |key, value| {
            spaces.add(key, value, self.part);
            too_many = limit.check((spaces.found.len() + spaces.leads.len()) as u64 * 24).map(drop);
            too_many.is_ok()
        })?;
        too_many?;
        spaces.compare();
        spaces.faults.into_iter().all(each);
        Ok(())
    }
}

impl Spaces {
    /// Takes up a key as it is stored. Those that are in no space come first.
    fn add(&mut self, key: &[u8], value: &[u8], part: usize) {
        if key == NEXT_SPACE {
            match read_number(value) {
                Ok(next) => self.next = next,
                Err(_) => self.faults.push(LongKeyFault::MalformedSpaceNumber),
            }
            return;
        }
        let (space, rest) = match key.split_first() {
            Some((&SPACE_TAG, _)) => {
                let number =
                    key.get(1..SPACE_PREFIX_BYTES).and_then(|bytes| Some(u64::from_be_bytes(bytes.try_into().ok()?)));
                let Some(number) = number else {
                    self.faults.push(LongKeyFault::MalformedKeyOfLen(key.len()));
                    return;
                };
                if self.found.last() != Some(&number) {
                    self.found.push(number);
                }
                (Some(number), key.get(SPACE_PREFIX_BYTES..).unwrap_or_default())
            }
            _ => (None, key),
        };
        if rest.len() <= part {
            return;
        }
        match (rest.len() == part + 1 && rest.last() == Some(&0), read_number(value)) {
            (false, _) => self.faults.push(LongKeyFault::MalformedKeyOfLen(key.len())),
            (true, Ok(number)) => self.leads.push((number, space)),
            (true, Err(_)) => self.faults.push(LongKeyFault::MalformedSpaceNumber),
        }
    }

    /// Compares the spaces with the keys that lead to them.
    fn compare(&mut self) {
        self.leads.sort_unstable();
        for at in 0..self.leads.len() {
            let (space, _) = self.leads[at];
            if self.leads.get(at + 1).is_some_and(|(next, _)| *next == space) {
                self.faults.push(LongKeyFault::SharedSpace(space));
            }
            if self.found.binary_search(&space).is_err() {
                self.faults.push(LongKeyFault::EmptySpace(space));
            }
        }
        for space in &self.found {
            if *space >= self.next {
                self.faults.push(LongKeyFault::UnreservedSpace { space: *space, next: self.next });
            }
            if !self.is_reachable(*space) {
                self.faults.push(LongKeyFault::UnreachableSpace(*space));
            }
        }
    }

    /// Whether the way back from a space ends at a key that is in no space.
    fn is_reachable(&self, space: u64) -> bool {
        let mut at = space;
        for _ in 0..=self.leads.len() {
            let number = self.leads.partition_point(|(space, _)| *space < at);
            match self.leads.get(number).filter(|(space, _)| *space == at) {
                Some((_, Some(before))) => at = *before,
                Some((_, None)) => return true,
                None => return false,
            }
        }
        false
    }
}
