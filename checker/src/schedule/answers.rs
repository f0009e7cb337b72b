//! The possible answers to one query, and the positions that give them.

use std::collections::HashMap;

use super::position::{AllowedTears, Tear, WriterPosition};
use super::query::ReaderQuery;
use super::timeline::Timeline;
use crate::trace::StorageOp;

/// All answers to one query, with the positions that give them.
#[derive(Debug)]
pub(super) struct QueryAnswers {
    /// Where the answer changes, ascending, and the number of the new answer. The first is at the start.
    points: Vec<(WriterPosition, u32)>,
    answers: Vec<Box<[u8]>>,
}

impl QueryAnswers {
    pub fn new(timeline: &Timeline, tearing: &AllowedTears, query: ReaderQuery) -> Self {
        let mut range = QueryAnswers { points: Vec::new(), answers: Vec::new() };
        let mut known: HashMap<Box<[u8]>, u32> = HashMap::new();
        let mut note = |position: WriterPosition, answer: Vec<u8>| {
            let next = known.len() as u32;
            let number = *known.entry(answer.into()).or_insert(next);
            let same = |(point, last): &(WriterPosition, u32)| *last == number && !point.is_torn();
            if position.is_torn() || !range.points.last().is_some_and(same) {
                range.points.push((position, number));
            }
        };
        note(WriterPosition::default(), compute_answer(timeline, query, WriterPosition::default()));
        let (from, to) = query.span();
        for n in 0..timeline.trace().len() as u32 {
            let changes = match query {
                ReaderQuery::Length => timeline.operation_resizes_file(n),
                ReaderQuery::Bytes { .. } => timeline.operation_may_affect_read(n, from, to),
            };
            if !changes {
                continue;
            }
            if let Some(StorageOp::Write { at, bytes }) = timeline.operation(n) {
                for tear in tearing.possible_tears(*at, bytes.len() as u64, from, to) {
                    let position = WriterPosition { prefix: n, tear };
                    note(position, compute_answer(timeline, query, position));
                }
            }
            let position = WriterPosition { prefix: n + 1, tear: Tear::None };
            note(position, compute_answer(timeline, query, position));
        }
        let mut answers: Vec<_> = known.into_iter().map(|(answer, number)| (number, answer)).collect();
        answers.sort_unstable_by_key(|(number, _)| *number);
        range.answers = answers.into_iter().map(|(_, answer)| answer).collect();
        range
    }

    /// The positions of the writer to explore for a reader that stands at `from`. First `from` itself; then, for each
    /// other answer, the first whole position and, if `include_torn`, the first torn one.
    pub fn positions_to_explore(&self, from: WriterPosition, include_torn: bool) -> Vec<WriterPosition> {
        let here = self.answer_number(from);
        let mut choices = vec![from];
        let (mut whole, mut part) = (vec![here], vec![here]);
        // Sets of pages are not ordered by what they show.
        let later = match from.tear {
            Tear::PageMask(_) => self.points.partition_point(|(point, _)| point.prefix < from.prefix),
            _ => self.points.partition_point(|(point, _)| *point <= from),
        };
        for (point, number) in self.points.iter().skip(later) {
            let Some(position) = position_showing(from, *point) else { continue };
            if !position.is_torn() {
                if !whole.contains(&Some(*number)) {
                    whole.push(Some(*number));
                    choices.push(position);
                }
            } else if include_torn && position != from {
                let number = self.answer_number(position);
                if !part.contains(&number) && !whole.contains(&number) {
                    part.push(number);
                    choices.push(position);
                }
            }
        }
        choices
    }

    /// The answer at a position, and its number; `None` if it is one that pages in some order give, and not known
    /// beforehand.
    pub fn answer_at(&self, position: WriterPosition) -> Option<(u32, &[u8])> {
        let number = self.answer_number(position)?;
        self.answers.get(number as usize).map(|answer| (number, &**answer))
    }

    fn answer_number(&self, position: WriterPosition) -> Option<u32> {
        if let Tear::PageMask(pages) = position.tear {
            return self.answer_number_of_pages(position.prefix, pages);
        }
        let after = self.points.partition_point(|(point, _)| *point <= position);
        self.points.get(after.checked_sub(1)?).map(|(_, number)| *number)
    }

    fn answer_number_of_pages(&self, prefix: u32, pages: u64) -> Option<u32> {
        let whole = WriterPosition { prefix, tear: Tear::None };
        let after = self.points.partition_point(|(point, _)| *point <= whole);
        let before = self.points.get(after.checked_sub(1)?).map(|(_, number)| *number);
        let tears = self.points.iter().skip(after).take_while(|(point, _)| point.prefix == prefix);
        let sets = tears.filter_map(|(point, number)| match point.tear {
            Tear::PageMask(set) => Some((set, *number)),
            _ => None,
        });
        let touched = sets.clone().fold(0, |all, (set, _)| all | set) & pages;
        if touched == 0 { before } else { sets.clone().find(|(set, _)| *set == touched).map(|(_, number)| number) }
    }
}

/// The position of a writer that goes on from `from` until it shows `point`; `None` if it cannot get there.
fn position_showing(from: WriterPosition, point: WriterPosition) -> Option<WriterPosition> {
    if point.prefix != from.prefix {
        return (point.prefix > from.prefix).then_some(point);
    }
    let tear = match (from.tear, point.tear) {
        (Tear::PageMask(seen), Tear::PageMask(more)) => Tear::PageMask(seen | more),
        (Tear::None, tear) => tear,
        (Tear::Cut(seen), Tear::Cut(more)) if more > seen => Tear::Cut(more),
        _ => return None,
    };
    Some(WriterPosition { prefix: from.prefix, tear })
}

fn compute_answer(timeline: &Timeline, query: ReaderQuery, position: WriterPosition) -> Vec<u8> {
    match query {
        ReaderQuery::Length => timeline.file_len_at(position).to_le_bytes().to_vec(),
        ReaderQuery::Bytes { at, len } => timeline.read_at_position(position, at, len),
    }
}
