//! The methods of objects for their attributes.

/// Methods for the attributes of an object that has `file`, `id` and `path`.
macro_rules! attributes {
    ($object:ident) => {
        impl $object {
            /// The attribute of this name: a string, or bytes if it is no UTF-8.
            ///
            /// # Errors
            /// [`model::Error::NotFound`](h5live_model::Error::NotFound) if there is none.
            pub fn attribute(&self, name: &(impl AsRef<[u8]> + ?Sized)) -> $crate::Result<$crate::Attribute> {
                $crate::Attribute::open(&self.file, self.id, &self.path, &name.as_ref().into())
            }

            /// The attributes, sorted bytewise by name.
            ///
            /// # Errors
            /// [`ErrorKind::Store`](crate::ErrorKind::Store) if they cannot be read.
            pub fn attributes(&self) -> $crate::Result<Vec<$crate::Attribute>> {
                let mut attributes = Vec::new();
                let listed = self.file.store().for_each_attribute(self.id, &mut |value| {
                    attributes.push($crate::Attribute::new(&self.file, self.id, &self.path, value));
                    true
                });
                listed.map_err(|error| self.file.error(Some(&self.path), error))?;
                attributes.sort_by(|a, b| a.name().cmp(b.name()));
                Ok(attributes)
            }

            /// Information about the object beside links, attributes and values: number of hard links, times, comment.
            ///
            /// # Errors
            /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be read.
            pub fn info(&self) -> $crate::Result<h5live_model::ObjectInfo> {
                self.file.store().info(self.id).map_err(|error| self.file.error(Some(&self.path), error))
            }

            /// The names of the attributes, sorted bytewise.
            ///
            /// # Errors
            /// [`ErrorKind::Store`](crate::ErrorKind::Store) if they cannot be listed.
            pub fn attribute_names(&self) -> $crate::Result<Vec<h5live_model::Name>> {
                let names = self.file.store().attribute_names(self.id);
                let mut names = names.map_err(|error| self.file.error(Some(&self.path), error))?;
                names.sort();
                Ok(names)
            }

            /// Sets an attribute of one value, in place of one of the same name: `set_attribute("units", "counts")`,
            /// `set_attribute("gain", &2.5)`.
            ///
            /// # Errors
            /// [`model::Error::ReadOnly`](h5live_model::Error::ReadOnly).
            pub fn set_attribute<T: $crate::AttributeValue + ?Sized>(
                &self,
                name: &str,
                value: &T,
            ) -> $crate::Result<()> {
                value.write_to(self.new_attribute(name))
            }

            /// Sets an attribute of several values, in an array of `dims` (`[rank]`, elements).
            ///
            /// # Errors
            /// [`model::Error::ReadOnly`](h5live_model::Error::ReadOnly), or
            /// [`ErrorKind::ElementCount`](crate::ErrorKind::ElementCount) if there are more or fewer values.
            pub fn set_attribute_array<T: $crate::H5Write>(
                &self,
                name: &str,
                values: &[T],
                dims: &[u64],
            ) -> $crate::Result<()> {
                self.new_attribute(name).shape(dims).write(values)
            }

            /// An attribute to be set, of any type and shape. Its name is a string, or bytes if it is no UTF-8.
            pub fn new_attribute(&self, name: &(impl AsRef<[u8]> + ?Sized)) -> $crate::AttributeBuilder {
                $crate::AttributeBuilder::new(&self.file, self.id, &self.path, name.as_ref().into())
            }

            /// Sets the comment on the object, or takes it away.
            ///
            /// # Errors
            /// [`model::Error::ReadOnly`](h5live_model::Error::ReadOnly).
            pub fn set_comment(&self, comment: Option<&str>) -> $crate::Result<()> {
                let comment = comment.map(h5live_model::Name::from);
                let change = h5live_model::ObjectInfoChange::Comment(comment.as_ref());
                let set = self.file.writer().and_then(|writer| writer.set_info(self.id, &change));
                set.map_err(|error| self.file.error(Some(&self.path), error))
            }

            /// Removes an attribute.
            ///
            /// # Errors
            /// [`model::Error::NotFound`](h5live_model::Error::NotFound),
            /// [`model::Error::ReadOnly`](h5live_model::Error::ReadOnly).
            pub fn remove_attribute(&self, name: &(impl AsRef<[u8]> + ?Sized)) -> $crate::Result<()> {
                let name = name.as_ref().into();
                let removed = self.file.writer().and_then(|_| {
                    self.file.replace_attribute(self.id, &name, |writer| writer.remove_attribute(self.id, &name))
                });
                removed.map_err(|error| self.file.error(Some(&self.path), error))
            }
        }
    };
}

pub(crate) use attributes;
