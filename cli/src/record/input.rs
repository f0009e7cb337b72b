//! The inputs that `record` reads: rows of CSV or NDJSON.

use std::io::{self, BufRead, Read};

use super::row::InputCell;

/// Why an input ended before its end.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The input cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// The input is empty: not even the names of the columns are there.
    #[error("no header line")]
    NoHeader,
    /// A column has no name, or the name of another.
    #[error("column {0}: its name is missing or taken")]
    Name(usize),
    /// A line is not what the format demands.
    #[error("row {row}: {source}")]
    Csv {
        /// Rows before it, and one.
        row: u64,
        /// The fault.
        source: csv::Error,
    },
    /// A line is no JSON object.
    #[error("row {row}: {source}")]
    Json {
        /// Rows before it, and one.
        row: u64,
        /// The fault.
        source: serde_json::Error,
    },
    /// A line is JSON, but no object of numbers, texts and truth values under the names of the first.
    #[error("row {row}: {fault}")]
    Object {
        /// Rows before it, and one.
        row: u64,
        /// The fault.
        fault: ObjectFault,
    },
}

/// The fault of a JSON line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectFault {
    /// It is no object.
    #[error("not an object")]
    NotAnObject,
    /// It has a name that the first line has not.
    #[error("{0:?} is not in the first row")]
    NewName(String),
    /// A value is an array or an object.
    #[error("{0:?} is neither a number nor a text nor a truth value")]
    Nested(String),
}

/// An input of rows.
pub trait RowInput: Send {
    /// The names of the columns.
    fn names(&self) -> &[String];

    /// The next row. The caller checks its number of cells.
    fn next_row(&mut self) -> Option<Result<Vec<InputCell>, InputError>>;
}

/// CSV with a header line.
pub struct CsvRows<R> {
    reader: csv::Reader<R>,
    names: Vec<String>,
    row: u64,
}

impl<R: Read> CsvRows<R> {
    /// Reads the header. `delimiter` separates the fields.
    ///
    /// # Errors
    /// [`InputError`] if there is no header or its names are not distinct.
    pub fn new(input: R, delimiter: u8) -> Result<Self, InputError> {
        let mut reader = csv::ReaderBuilder::new().flexible(true).delimiter(delimiter).from_reader(input);
        let header = reader.headers().map_err(|source| InputError::Csv { row: 0, source })?;
        let names: Vec<_> = header.iter().map(|name| name.trim().to_owned()).collect();
        if names.is_empty() {
            return Err(InputError::NoHeader);
        }
        check_names(&names)?;
        Ok(CsvRows { reader, names, row: 0 })
    }
}

impl<R: Read + Send> RowInput for CsvRows<R> {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn next_row(&mut self) -> Option<Result<Vec<InputCell>, InputError>> {
        let mut record = csv::StringRecord::new();
        self.row += 1;
        match self.reader.read_record(&mut record) {
            Ok(false) => None,
            Ok(true) => {
                let cell =
                    |text: &str| if text.is_empty() { InputCell::Empty } else { InputCell::Plain(text.to_owned()) };
                Some(Ok(record.iter().map(cell).collect()))
            }
            Err(source) => Some(Err(InputError::Csv { row: self.row, source })),
        }
    }
}

/// A JSON object per line; the first says which columns there are.
pub struct NdjsonRows<R> {
    lines: R,
    names: Vec<String>,
    first: Option<Vec<InputCell>>,
    row: u64,
}

impl<R: BufRead> NdjsonRows<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// [`InputError`] if there is none, or it is no object.
    pub fn new(lines: R) -> Result<Self, InputError> {
        let mut rows = NdjsonRows { lines, names: Vec::new(), first: None, row: 0 };
        let object = rows.next_object().ok_or(InputError::NoHeader)??;
        rows.names = object.keys().cloned().collect();
        check_names(&rows.names)?;
        rows.first = Some(rows.cells(object)?);
        Ok(rows)
    }

    fn next_object(&mut self) -> Option<Result<serde_json::Map<String, serde_json::Value>, InputError>> {
        let mut line = String::new();
        loop {
            line.clear();
            match self.lines.read_line(&mut line) {
                Ok(0) => return None,
                Ok(_) if line.trim().is_empty() => continue,
                Ok(_) => break,
                Err(error) => return Some(Err(error.into())),
            }
        }
        self.row += 1;
        let row = self.row;
        Some(match serde_json::from_str(&line) {
            Ok(serde_json::Value::Object(object)) => Ok(object),
            Ok(_) => Err(InputError::Object { row, fault: ObjectFault::NotAnObject }),
            Err(source) => Err(InputError::Json { row, source }),
        })
    }

    /// The cells in the order of the columns; a name that the object has not is an empty cell.
    fn cells(&self, object: serde_json::Map<String, serde_json::Value>) -> Result<Vec<InputCell>, InputError> {
        let fault = |fault| InputError::Object { row: self.row, fault };
        let mut cells = vec![InputCell::Empty; self.names.len()];
        for (at, (name, value)) in object.into_iter().enumerate() {
            // Names nearly always come in the order of the first line.
            let known =
                if self.names.get(at) == Some(&name) { Some(at) } else { self.names.iter().position(|n| *n == name) };
            let Some(cell) = known.and_then(|at| cells.get_mut(at)) else {
                return Err(fault(ObjectFault::NewName(name)));
            };
            *cell = match value {
                serde_json::Value::Null => InputCell::Empty,
                serde_json::Value::Bool(truth) => InputCell::Plain(truth.to_string()),
                serde_json::Value::Number(number) => InputCell::Plain(number.to_string()),
                serde_json::Value::String(text) => InputCell::Text(text),
                _ => return Err(fault(ObjectFault::Nested(name))),
            };
        }
        Ok(cells)
    }
}

impl<R: BufRead + Send> RowInput for NdjsonRows<R> {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn next_row(&mut self) -> Option<Result<Vec<InputCell>, InputError>> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        let object = self.next_object()?;
        Some(object.and_then(|object| self.cells(object)))
    }
}

fn check_names(names: &[String]) -> Result<(), InputError> {
    let bad = |(i, name): &(usize, &String)| name.is_empty() || names.iter().take(*i).any(|n| n == *name);
    names.iter().enumerate().find(bad).map_or(Ok(()), |(i, _)| Err(InputError::Name(i + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> InputCell {
        InputCell::Plain(text.to_owned())
    }

    #[test]
    fn csv_yields_its_header_and_rows() {
        let mut rows = CsvRows::new(&b"t, v\n1,\"a,b\"\n,x\n"[..], b',').unwrap();
        assert_eq!(rows.names(), ["t", "v"]);
        assert_eq!(rows.next_row().unwrap().unwrap(), [plain("1"), plain("a,b")]);
        assert_eq!(rows.next_row().unwrap().unwrap(), [InputCell::Empty, plain("x")]);
        assert!(rows.next_row().is_none());
    }

    #[test]
    fn csv_hands_on_rows_of_any_length() {
        let mut rows = CsvRows::new(&b"a,b\n1\n"[..], b',').unwrap();
        assert_eq!(rows.next_row().unwrap().unwrap(), [plain("1")]);
    }

    #[test]
    fn refuses_headers_without_distinct_names() {
        assert!(matches!(CsvRows::new(&b""[..], b','), Err(InputError::NoHeader)));
        assert!(matches!(CsvRows::new(&b"a,,c\n"[..], b','), Err(InputError::Name(2))));
        assert!(matches!(CsvRows::new(&b"a,b,a\n"[..], b','), Err(InputError::Name(3))));
    }

    #[test]
    fn csv_that_is_no_text_names_the_row() {
        let mut rows = CsvRows::new(&b"a\n1\n\xFF\n"[..], b',').unwrap();
        rows.next_row().unwrap().unwrap();
        assert!(matches!(rows.next_row(), Some(Err(InputError::Csv { row: 2, .. }))));
    }

    #[test]
    fn json_lines_are_put_in_the_order_of_the_first() {
        let lines = "{\"t\": 1, \"s\": \"5\", \"ok\": true}\n\n{\"s\": null, \"t\": 2.5}\n";
        let mut rows = NdjsonRows::new(lines.as_bytes()).unwrap();
        assert_eq!(rows.names(), ["t", "s", "ok"]);
        assert_eq!(rows.next_row().unwrap().unwrap(), [plain("1"), InputCell::Text("5".into()), plain("true")]);
        assert_eq!(rows.next_row().unwrap().unwrap(), [plain("2.5"), InputCell::Empty, InputCell::Empty]);
        assert!(rows.next_row().is_none());
    }

    #[test]
    fn json_that_does_not_fit_names_the_row() {
        let mut rows = NdjsonRows::new("{\"a\": 1}\n{\"b\": 1}\n{\"a\": [1]}\n7\n{\n".as_bytes()).unwrap();
        rows.next_row().unwrap().unwrap();
        let errors: Vec<_> = (0..4).map(|_| rows.next_row().unwrap().unwrap_err().to_string()).collect();
        assert_eq!(errors[0], "row 2: \"b\" is not in the first row");
        assert_eq!(errors[1], "row 3: \"a\" is neither a number nor a text nor a truth value");
        assert_eq!(errors[2], "row 4: not an object");
        assert!(errors[3].starts_with("row 5: "), "{}", errors[3]);
    }
}
