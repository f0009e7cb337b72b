//! Numbers that belong to tokens, kept by runs.
//!
//! Appended texts get tokens one after the other and lie one after the other in their chunk, so that a chunk of any number
//! of them takes one run. A recorder's memory would else grow with each text.

use std::collections::BTreeMap;

use crate::layout::VarLenToken;

/// A token as a key: tokens that come one after the other have keys that do.
fn key_of(token: VarLenToken) -> u128 {
    u128::from(token.holder_id) << 64 | u128::from(token.holder_version) << 32 | u128::from(token.element_number)
}

/// The token of a key, without its count.
fn token_of(key: u128) -> VarLenToken {
    VarLenToken {
        base_element_count: 0,
        holder_id: (key >> 64) as u32,
        holder_version: (key >> 32) as u32,
        element_number: key as u32,
    }
}

/// What the numbers of a run do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// All are the same.
    Same,
    /// Each is one more than that before it.
    Next,
}

#[derive(Debug, Clone, Copy)]
struct TokenRun {
    tokens: u32,
    /// The number of the first token.
    number: u32,
}

/// A number for each of some tokens.
#[derive(Debug)]
pub struct RunLengthTokenMap {
    runs: BTreeMap<u128, TokenRun>,
    step: Step,
    tokens: usize,
}

impl RunLengthTokenMap {
    /// For numbers that go on with the tokens.
    pub fn for_consecutive_numbers() -> Self {
        RunLengthTokenMap { runs: BTreeMap::new(), step: Step::Next, tokens: 0 }
    }

    /// For numbers that many tokens share.
    pub fn for_shared_numbers() -> Self {
        RunLengthTokenMap { runs: BTreeMap::new(), step: Step::Same, tokens: 0 }
    }

    /// How many tokens have a number.
    pub fn len(&self) -> usize {
        self.tokens
    }

    /// How many runs they are.
    #[cfg(test)]
    pub fn run_count(&self) -> usize {
        self.runs.len()
    }

    fn number_at(&self, run: TokenRun, at: u32) -> u32 {
        match self.step {
            Step::Same => run.number,
            Step::Next => run.number.wrapping_add(at),
        }
    }

    /// The run in which a key is: its first key, the run, and how many tokens are before that key in it.
    fn run_of(&self, key: u128) -> Option<(u128, TokenRun, u32)> {
        let (first, run) = self.runs.range(..=key).next_back()?;
        let at = u32::try_from(key - first).ok().filter(|at| *at < run.tokens)?;
        Some((*first, *run, at))
    }

    /// The number of a token.
    pub fn get(&self, token: VarLenToken) -> Option<u32> {
        let (_, run, at) = self.run_of(key_of(token))?;
        Some(self.number_at(run, at))
    }

    /// Gives a token a number, in place of the one that it has.
    pub fn insert(&mut self, token: VarLenToken, number: u32) {
        if self.get(token) == Some(number) {
            return;
        }
        self.remove(token);
        let key = key_of(token);
        self.tokens += 1;
        if let Some((first, run)) = self.runs.range(..key).next_back().map(|(first, run)| (*first, *run)) {
            let follows = first + u128::from(run.tokens) == key && self.number_at(run, run.tokens) == number;
            if let Some(tokens) = run.tokens.checked_add(1).filter(|_| follows) {
                self.runs.insert(first, TokenRun { tokens, ..run });
                return;
            }
        }
        self.runs.insert(key, TokenRun { tokens: 1, number });
    }

    /// Forgets a token.
    pub fn remove(&mut self, token: VarLenToken) -> Option<u32> {
        let (first, run, at) = self.run_of(key_of(token))?;
        let number = self.number_at(run, at);
        self.tokens -= 1;
        match at {
            0 => self.runs.remove(&first),
            _ => self.runs.insert(first, TokenRun { tokens: at, ..run }),
        };
        if at + 1 < run.tokens {
            let rest = TokenRun { tokens: run.tokens - at - 1, number: self.number_at(run, at + 1) };
            self.runs.insert(first + u128::from(at) + 1, rest);
        }
        Some(number)
    }

    /// The tokens, without their counts, and their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (VarLenToken, u32)> {
        let run = move |(first, run): (&u128, &TokenRun)| {
            let (first, run) = (*first, *run);
            (0..run.tokens).map(move |at| (token_of(first + u128::from(at)), self.number_at(run, at)))
        };
        self.runs.iter().flat_map(run)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn token(number: u32) -> VarLenToken {
        VarLenToken { base_element_count: 0, holder_id: u32::MAX, holder_version: 0, element_number: number }
    }

    #[test]
    fn what_comes_one_after_the_other_is_one_run() {
        let (mut next, mut same) =
            (RunLengthTokenMap::for_consecutive_numbers(), RunLengthTokenMap::for_shared_numbers());
        for number in 0..10_000 {
            next.insert(token(number + 7), number);
            same.insert(token(number + 7), 3);
        }
        assert_eq!((next.len(), next.run_count(), same.len(), same.run_count()), (10_000, 1, 10_000, 1));
        assert_eq!(next.remove(token(5_000)), Some(4_993));
        assert_eq!((next.run_count(), next.get(token(5_001)), next.get(token(5_000))), (2, Some(4_994), None));
    }

    #[test]
    fn the_last_number_of_a_version_is_followed_by_the_first_of_the_next() {
        let mut runs = RunLengthTokenMap::for_consecutive_numbers();
        runs.insert(VarLenToken { element_number: u32::MAX, ..token(0) }, 1);
        runs.insert(VarLenToken { holder_version: 1, ..token(0) }, 2);
        assert_eq!(
            runs.iter().map(|(token, number)| (token.holder_version, token.element_number, number)).collect::<Vec<_>>(),
            [(0, u32::MAX, 1), (1, 0, 2)]
        );
    }

    proptest! {
        #[test]
        fn they_are_a_map(changes in prop::collection::vec((any::<bool>(), 0..40u32, 0..6u32), 0..200)) {
            for mut runs in [RunLengthTokenMap::for_consecutive_numbers(), RunLengthTokenMap::for_shared_numbers()] {
                let mut map = BTreeMap::new();
                for (inserts, at, number) in &changes {
                    // Numbers that often go on, and often are the same.
                    let number = if number % 2 == 0 { *at } else { *number };
                    match inserts {
                        true => {
                            runs.insert(token(*at), number);
                            map.insert(*at, number);
                        }
                        false => prop_assert_eq!(runs.remove(token(*at)), map.remove(at)),
                    }
                    prop_assert_eq!(runs.len(), map.len());
                    prop_assert_eq!(runs.get(token(*at)), map.get(at).copied());
                }
                let found: Vec<_> = runs.iter().map(|(token, number)| (token.element_number, number)).collect();
                prop_assert_eq!(found, map.into_iter().collect::<Vec<_>>());
            }
        }
    }
}
