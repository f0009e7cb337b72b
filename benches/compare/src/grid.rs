//! Tables of what was done with each pair of stores.

use std::fmt::Write as _;

use crate::Side;
use crate::report::rate;
use crate::row::Row;

/// From what to what, if a row is of a pair.
pub fn pair(row: &Row) -> Option<(&'static str, &'static str)> {
    let (names, pair) = (row.work.pairs_of, row.pair? as usize);
    Some((names.get(pair / names.len().max(1))?, names.get(pair % names.len().max(1))?))
}

/// The rate of a pair, and the requests where a side is an object store.
pub fn cell(row: &Row) -> String {
    let Some((median, spread)) = row.rate(Side::H5live) else { return String::new() };
    let requests = row.of(Side::H5live).and_then(|runs| runs.last()?.requests);
    let requests =
        requests.map_or_else(String::new, |found| format!(" ({} requests in {} waves)", found.number, found.waves));
    format!("{} ±{:.0} %{requests}", rate(row.work.unit, median), spread * 100.0)
}

/// A table for each work: from the store of a line to that of a column.
pub fn tables(text: &mut String, grids: &[Vec<Row>]) {
    if grids.is_empty() {
        return;
    }
    text.push_str(
        "\n## Copies between stores\n\n\
         From the store of a line to that of a column, by `Copier`, from opening both to the flush of the new one. What was\n\
         copied is read back and compared. `native` is a plain file, `hsds` an object store in a folder, `mem` a file in\n\
         memory. *Requests* are all that a copy makes of object stores. Those of one wave are under way together; in a folder\n\
         a request is a call or a few.\n",
    );
    for rows in grids {
        let Some(first) = rows.first() else { continue };
        let names = first.work.pairs_of;
        let _ = writeln!(text, "\n{} (`{}`):\n", first.work.title, first.work.name);
        let _ = writeln!(text, "| from \\ to | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()));
        for (from, line) in names.iter().zip(rows.chunks(names.len())) {
            let cells: Vec<_> = line.iter().map(cell).collect();
            let _ = writeln!(text, "| {from} | {} |", cells.join(" | "));
        }
    }
}
