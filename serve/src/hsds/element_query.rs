//! Conditions on elements, as HSDS takes them: `open > 3000 AND symbol IN (AAPL, EBAY)`. `_` is the element itself, where it
//! is no compound.

use std::cmp::Ordering;
use std::str::Chars;

use super::element_bytes::{ElementBytes, ElementValue};
use super::faults::bad_request;
use super::hdf5_json_type::Hdf5JsonType;
use crate::fault::Fault;

/// Conditions within conditions, at most.
const MAX_DEPTH: usize = 64;

/// A part of the text of a condition.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// A name, or a text without quotes.
    Word(String),
    /// A text in quotes.
    Quoted(String),
    Integer(i128),
    Float(f64),
    Sign(&'static str),
}

/// What a member is compared with.
#[derive(Debug, Clone, PartialEq)]
enum Literal {
    Integer(i128),
    Float(f64),
    Text(String),
}

/// A condition on the members of an element; by their numbers in it.
#[derive(Debug, Clone, PartialEq)]
enum Condition {
    Compares(usize, &'static str, Literal),
    IsIn(usize, Vec<Literal>),
    IsNull(usize),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

/// A condition on elements of a type.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ElementQuery {
    condition: Condition,
    members: Vec<(String, Hdf5JsonType)>,
}

fn invalid(what: impl std::fmt::Display) -> Fault {
    bad_request(format!("Invalid query expression: {what}"))
}

impl ElementQuery {
    /// # Errors
    /// If a text is no condition on such elements.
    pub fn parse(text: &str, of: &Hdf5JsonType) -> Result<Self, Fault> {
        let members = match of {
            Hdf5JsonType::Compound(members) => members.clone(),
            other => vec![("_".to_owned(), other.clone())],
        };
        let mut parser = Parser { tokens: tokens_of(text)?, at: 0, members: &members };
        let condition = parser.either(0)?;
        match parser.peek() {
            None => Ok(ElementQuery { condition, members }),
            Some(token) => Err(invalid(format!("{token:?} stands behind its end"))),
        }
    }

    /// Which of so many elements, that lie one after the other, fulfil the condition; as many as `limit`.
    ///
    /// # Errors
    /// If they end too early.
    pub fn matching_indices(&self, bytes: &[u8], count: u64, limit: usize) -> Result<Vec<u64>, Fault> {
        let (mut from, mut found) = (ElementBytes(bytes), Vec::new());
        for number in 0..count {
            let values = self.members.iter().map(|(_, member)| from.next_value(member)).collect::<Option<Vec<_>>>();
            let values = values.ok_or_else(|| bad_request("The elements end too early"))?;
            if self.condition.holds(&values) {
                found.push(number);
            }
            if found.len() >= limit {
                break;
            }
        }
        Ok(found)
    }
}

impl Condition {
    fn holds(&self, values: &[ElementValue<'_>]) -> bool {
        let value = |member: &usize| values.get(*member);
        match self {
            Condition::Compares(member, sign, literal) => {
                let order = value(member).and_then(|value| compare(value, literal));
                match (*sign, order) {
                    ("!=", order) => order != Some(Ordering::Equal),
                    (_, None) => false,
                    ("<", Some(order)) => order == Ordering::Less,
                    (">", Some(order)) => order == Ordering::Greater,
                    ("<=", Some(order)) => order != Ordering::Greater,
                    (">=", Some(order)) => order != Ordering::Less,
                    (_, Some(order)) => order == Ordering::Equal,
                }
            }
            Condition::IsIn(member, literals) => {
                let is_one = |literal: &Literal| {
                    value(member).and_then(|value| compare(value, literal)) == Some(Ordering::Equal)
                };
                literals.iter().any(is_one)
            }
            Condition::IsNull(member) => {
                matches!(value(member), Some(ElementValue::Float(number, _)) if number.is_nan())
            }
            Condition::Not(condition) => !condition.holds(values),
            Condition::And(a, b) => a.holds(values) && b.holds(values),
            Condition::Or(a, b) => a.holds(values) || b.holds(values),
        }
    }
}

fn compare(value: &ElementValue<'_>, literal: &Literal) -> Option<Ordering> {
    match (value, literal) {
        (ElementValue::Integer(a), Literal::Integer(b)) => Some(a.cmp(b)),
        (ElementValue::Integer(a), Literal::Float(b)) => (*a as f64).partial_cmp(b),
        (ElementValue::Float(a, size), Literal::Integer(b)) => a.partial_cmp(&rounded(*b as f64, *size)),
        (ElementValue::Float(a, size), Literal::Float(b)) => a.partial_cmp(&rounded(*b, *size)),
        (ElementValue::Text(a), Literal::Text(b)) => Some((*a).cmp(b.as_bytes())),
        // A date may be a text of digits.
        (ElementValue::Text(a), Literal::Integer(b)) => Some((*a).cmp(b.to_string().as_bytes())),
        (ElementValue::Text(a), Literal::Float(b)) => Some((*a).cmp((b.trunc() as i128).to_string().as_bytes())),
        _ => None,
    }
}

/// A number as elements of so many bytes have it.
fn rounded(number: f64, size: usize) -> f64 {
    if size < 8 { f64::from(number as f32) } else { number }
}

/// Reads conditions: `~` binds closest, then `&`, then `|`.
struct Parser<'a> {
    tokens: Vec<Token>,
    at: usize,
    members: &'a [(String, Hdf5JsonType)],
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Result<Token, Fault> {
        let token = self.peek().cloned().ok_or_else(|| invalid("it ends too early"))?;
        self.at += 1;
        Ok(token)
    }

    /// Takes a sign, or the word that stands for it.
    fn takes(&mut self, sign: &str, word: &str) -> bool {
        let is_it = match self.peek() {
            Some(Token::Sign(found)) => *found == sign,
            Some(Token::Word(found)) => !word.is_empty() && found.eq_ignore_ascii_case(word),
            _ => false,
        };
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, sign: &str) -> Result<(), Fault> {
        if self.takes(sign, "") { Ok(()) } else { Err(invalid(format!("{sign} is missing"))) }
    }

    fn either(&mut self, depth: usize) -> Result<Condition, Fault> {
        let mut found = self.both(depth)?;
        while self.takes("|", "or") {
            found = Condition::Or(found.into(), self.both(depth)?.into());
        }
        Ok(found)
    }

    fn both(&mut self, depth: usize) -> Result<Condition, Fault> {
        let mut found = self.single(depth)?;
        while self.takes("&", "and") {
            found = Condition::And(found.into(), self.single(depth)?.into());
        }
        Ok(found)
    }

    fn single(&mut self, depth: usize) -> Result<Condition, Fault> {
        if depth > MAX_DEPTH {
            return Err(invalid("too many conditions are within each other"));
        }
        if self.takes("~", "not") {
            return Ok(Condition::Not(self.single(depth + 1)?.into()));
        }
        if self.takes("(", "") {
            let found = self.either(depth + 1)?;
            self.expect(")")?;
            return Ok(found);
        }
        self.predicate()
    }

    /// The number of a member: its name, its name in quotes, or `field(NAME)`.
    fn member(&mut self) -> Result<usize, Fault> {
        let token = self.next()?;
        let name = match token {
            Token::Word(word) if word.eq_ignore_ascii_case("field") => {
                self.expect("(")?;
                let (Token::Word(name) | Token::Quoted(name)) = self.next()? else {
                    return Err(invalid("field(..) has the name of a field"));
                };
                self.expect(")")?;
                name
            }
            Token::Word(name) | Token::Quoted(name) => name,
            other => return Err(invalid(format!("{other:?} is no field"))),
        };
        let found = self.members.iter().position(|(member, _)| *member == name);
        found.ok_or_else(|| invalid(format!("there is no field {name:?}")))
    }

    fn predicate(&mut self) -> Result<Condition, Fault> {
        let member = self.member()?;
        if self.takes(".", "") {
            let Token::Word(method) = self.next()? else { return Err(invalid("a method is missing")) };
            return match &*method.to_ascii_lowercase() {
                "isin" => Ok(Condition::IsIn(member, self.literals(member)?)),
                "is_null" => self.no_arguments().map(|()| Condition::IsNull(member)),
                "is_valid" => self.no_arguments().map(|()| Condition::Not(Condition::IsNull(member).into())),
                other => Err(invalid(format!("there is no method {other:?}"))),
            };
        }
        if self.takes("", "in") {
            return Ok(Condition::IsIn(member, self.literals(member)?));
        }
        if self.takes("", "not") {
            if !self.takes("", "in") {
                return Err(invalid("IN is missing behind NOT"));
            }
            return Ok(Condition::Not(Condition::IsIn(member, self.literals(member)?).into()));
        }
        match self.next()? {
            Token::Sign(sign @ ("==" | "!=" | "<" | ">" | "<=" | ">=")) => {
                Ok(Condition::Compares(member, sign, self.literal(member)?))
            }
            other => Err(invalid(format!("{other:?} compares nothing"))),
        }
    }

    fn no_arguments(&mut self) -> Result<(), Fault> {
        self.expect("(")?;
        self.expect(")")
    }

    fn literals(&mut self, member: usize) -> Result<Vec<Literal>, Fault> {
        self.expect("(")?;
        let mut found = vec![self.literal(member)?];
        while self.takes(",", "") {
            found.push(self.literal(member)?);
        }
        self.expect(")")?;
        Ok(found)
    }

    /// A value that such a member can be compared with.
    fn literal(&mut self, member: usize) -> Result<Literal, Fault> {
        let of = self.members.get(member).map(|(_, of)| of);
        let is_text = matches!(of, Some(Hdf5JsonType::Text { .. } | Hdf5JsonType::VarText { .. }));
        let is_number =
            matches!(of, Some(Hdf5JsonType::Integer { .. } | Hdf5JsonType::Float { .. } | Hdf5JsonType::Enum { .. }));
        let literal = match self.next()? {
            Token::Integer(number) => Literal::Integer(number),
            Token::Float(number) => Literal::Float(number),
            Token::Quoted(text) => Literal::Text(text),
            Token::Word(word) if is_number && word.eq_ignore_ascii_case("true") => Literal::Integer(1),
            Token::Word(word) if is_number && word.eq_ignore_ascii_case("false") => Literal::Integer(0),
            Token::Word(word) => Literal::Text(word),
            other => return Err(invalid(format!("{other:?} is no value"))),
        };
        match is_text || is_number && !matches!(literal, Literal::Text(_)) {
            true => Ok(literal),
            false => Err(invalid(format!("a field cannot be compared with {literal:?}"))),
        }
    }
}

fn tokens_of(text: &str) -> Result<Vec<Token>, Fault> {
    const SIGNS: [&str; 14] = ["==", "!=", "<=", ">=", "=", "<", ">", "&", "|", "~", ".", "(", ")", ","];
    let (mut rest, mut found) = (text.trim_start(), Vec::new());
    while let Some(letter) = rest.chars().next() {
        let quoted = rest.strip_prefix('b').filter(|rest| rest.starts_with(['\'', '"'])).unwrap_or(rest);
        let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
        let (token, after) = match letter {
            _ if quoted.starts_with(['\'', '"']) => {
                let quote = quoted.chars().next().unwrap_or_default();
                let (inner, after) = quoted[1..].split_once(quote).ok_or_else(|| invalid("a text has no end"))?;
                (Token::Quoted(inner.to_owned()), after)
            }
            letter if letter.is_alphabetic() || letter == '_' => {
                let (word, after) = split_while(rest, |letter| letter.is_alphanumeric() || letter == '_');
                (Token::Word(word.to_owned()), after)
            }
            letter if letter.is_ascii_digit() || letter == '-' => number_of(rest)?,
            letter => {
                let sign = sign.ok_or_else(|| invalid(format!("{letter:?} is no part of one")))?;
                (Token::Sign(if *sign == "=" { "==" } else { sign }), &rest[sign.len()..])
            }
        };
        found.push(token);
        rest = after.trim_start();
    }
    Ok(found)
}

fn split_while(text: &str, is_part: impl Fn(char) -> bool) -> (&str, &str) {
    let mut letters: Chars<'_> = text.chars();
    while letters.clone().next().is_some_and(&is_part) {
        letters.next();
    }
    text.split_at(text.len() - letters.as_str().len())
}

fn number_of(text: &str) -> Result<(Token, &str), Fault> {
    let bare = text.strip_prefix('-').unwrap_or(text);
    let (whole, mut after) = split_while(bare, |letter| letter.is_ascii_digit());
    let mut is_whole = true;
    if let Some(fraction) = after.strip_prefix('.') {
        (is_whole, after) = (false, split_while(fraction, |letter| letter.is_ascii_digit()).1);
    }
    let number = &text[..text.len() - after.len()];
    let bad = || invalid(format!("{number:?} is no number"));
    let token = match (whole.is_empty(), is_whole) {
        (true, _) => return Err(bad()),
        (false, true) => Token::Integer(number.parse().map_err(|_| bad())?),
        (false, false) => Token::Float(number.parse().map_err(|_| bad())?),
    };
    Ok((token, after))
}

#[cfg(test)]
mod tests {
    use h5live::model::{ByteOrder, CharacterSet, Sign, StringPadding};

    use super::*;

    fn row() -> Hdf5JsonType {
        let text = Hdf5JsonType::Text { size: 4, set: CharacterSet::Ascii, padding: StringPadding::NullPadded };
        let number = Hdf5JsonType::Integer { size: 2, order: ByteOrder::Little, sign: Sign::Signed };
        let price = Hdf5JsonType::Float { size: 4, order: ByteOrder::Little };
        Hdf5JsonType::Compound(vec![("name".into(), text), ("count".into(), number), ("price".into(), price)])
    }

    fn bytes() -> Vec<u8> {
        let rows: [(&[u8; 4], i16, f32); 4] =
            [(b"AAPL", 3, 0.1), (b"EBAY", -1, 0.2), (b"X\0\0\0", 7, f32::NAN), (b"AAPL", 0, 5.0)];
        let row = |(name, count, price): &(&[u8; 4], i16, f32)| {
            [&name[..], &count.to_le_bytes(), &price.to_le_bytes()].concat()
        };
        rows.iter().flat_map(row).collect()
    }

    fn matching(text: &str) -> Result<Vec<u64>, Fault> {
        ElementQuery::parse(text, &row())?.matching_indices(&bytes(), 4, usize::MAX)
    }

    #[test]
    fn conditions_are_those_of_hsds() {
        for (text, expected) in [
            ("name == b'AAPL'", vec![0, 3]),
            ("name = AAPL and count > 0", vec![0]),
            ("'name' == \"X\"", vec![2]),
            ("name.isin('AAPL', EBAY)", vec![0, 1, 3]),
            ("name IN (X)", vec![2]),
            ("name NOT IN (X, EBAY)", vec![0, 3]),
            ("~(name IN (X)) & (count < 1)", vec![1, 3]),
            ("count == -1 OR count == 7", vec![1, 2]),
            ("field('price') == 0.1", vec![0]),
            ("price.is_null()", vec![2]),
            ("price.is_valid()", vec![0, 1, 3]),
            ("price != 5", vec![0, 1, 2]),
            ("NOT price > 0.15", vec![0, 2]),
            ("count >= 3.5", vec![2]),
        ] {
            assert_eq!(matching(text).unwrap(), expected, "{text}");
        }
        assert_eq!(ElementQuery::parse("name == AAPL", &row()).unwrap().matching_indices(&bytes(), 4, 1).unwrap(), [0]);
        let number = Hdf5JsonType::Integer { size: 1, order: ByteOrder::Little, sign: Sign::Unsigned };
        let itself = ElementQuery::parse("_ > 1 AND _ < 200", &number).unwrap();
        assert_eq!(itself.matching_indices(&[1, 2, 255, 199], 4, usize::MAX).unwrap(), [1, 3]);
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        let deep = "(".repeat(10_000);
        for text in [
            "",
            "foobar",
            "count @ 12",
            "other < 2",
            "count > 12; price < 40",
            "count > name",
            "count >",
            "count > 1 2",
            "(count > 1",
            "name == 'AAPL",
            "count.size()",
            "count in 3",
            "count not 3",
            "count > -",
            "_ > 1",
            &deep,
            "é",
            "import os; print(os.environ['FOO'])",
        ] {
            let refused = matching(text).unwrap_err();
            assert!(refused.message.contains("Invalid query"), "{text}: {refused:?}");
        }
    }
}
