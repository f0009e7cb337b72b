//! What a run of several works has found.

use crate::row::Row;
use crate::work::{Ground, Work};
use crate::{Result, measure, report};

#[derive(Default)]
pub struct Found {
    pub rounds: usize,
    /// Whether the files of a work stay when it is done.
    pub keep: bool,
    pub rows: Vec<Row>,
    /// The rows of each work that is done with several sizes.
    pub curves: Vec<Vec<Row>>,
    /// The rows of each work that is done with pairs of stores.
    pub grids: Vec<Vec<Row>>,
    /// Works that could not be done, and why.
    pub failed: Vec<(Work, String)>,
}

impl Found {
    /// Does a work and prints what is found. One that fails does not take with it what the others have found.
    ///
    /// # Errors
    /// If its folder cannot be made or removed.
    pub fn add(&mut self, work: &Work, ground: &Ground) -> Result<()> {
        std::fs::create_dir_all(&ground.folder)?;
        if let Err(error) = self.measure(work, ground) {
            eprintln!("compare: {}: {error}", work.name);
            self.failed.push((*work, error.to_string()));
        }
        if !self.keep {
            std::fs::remove_dir_all(&ground.folder)?;
        }
        Ok(())
    }

    fn measure(&mut self, work: &Work, ground: &Ground) -> Result<()> {
        if !work.pairs_of.is_empty() {
            let pairs = 0..(work.pairs_of.len() as u64).pow(2);
            let grid = pairs.map(|pair| {
                let row = measure::in_turns(work, &Ground { part: Some(pair), ..ground.clone() }, self.rounds)?;
                report::print(&row, &[]);
                Ok(row)
            });
            self.grids.push(grid.collect::<Result<_>>()?);
            return Ok(());
        }
        if work.chunks.is_empty() {
            let row = measure::in_turns(work, ground, self.rounds)?;
            report::print(&row, &self.rows);
            self.rows.push(row);
            return Ok(());
        }
        let curve = work.chunks.iter().map(|chunk| {
            let row = measure::in_turns(work, &Ground { chunk: *chunk, ..ground.clone() }, self.rounds)?;
            report::print(&row, &[]);
            Ok(row)
        });
        self.curves.push(curve.collect::<Result<_>>()?);
        Ok(())
    }
}
