//! Settings: how a container was made, or is to be opened, as named texts.

/// Named values as text, in the order in which they were set. Which names there are, and what they mean, is the affair
/// of one kind of store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(Vec<(String, String)>);

impl Settings {
    /// Sets a value in place of one of the same name.
    pub fn set(&mut self, name: &str, value: impl ToString) {
        let value = value.to_string();
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_replaces_the_one_of_the_same_name() {
        let mut settings = Settings::default();
        assert!(settings.is_empty());
        settings.set("page_size", 4096);
        settings.set("persist", true);
        settings.set("page_size", 8192);
        assert_eq!(settings.iter().collect::<Vec<_>>(), [("page_size", "8192"), ("persist", "true")]);
        assert_eq!(settings.get("persist"), Some("true"));
        assert_eq!(settings.get("threshold"), None);
    }
}
