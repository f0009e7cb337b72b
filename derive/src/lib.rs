//! `#[derive(H5Type)]`: structs as compound types, enums without data as enum types.

use proc_macro::TokenStream;
use proc_macro2::{Span, TokenStream as Tokens};
use quote::{format_ident, quote};
use syn::{Attribute, Data, DataEnum, DeriveInput, Error, Fields, Ident, Index, LitStr, Member, Result, Type};

/// Implements `h5live::H5Type`.
///
/// A struct becomes a compound type with a member for each field, one right after the other. An enum without data
/// becomes an enum type on the integer of its `#[repr]`, or on `i32`. `#[h5(rename = "name")]` on a field or a variant
/// gives it another name in the file.
///
/// A file's compound may have further members, in any order: they are skipped on reading, and stay on writing.
#[proc_macro_derive(H5Type, attributes(h5))]
pub fn h5type(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    let tokens = match &input.data {
        Data::Struct(data) => compound(&input, &data.fields),
        Data::Enum(data) => enumeration(&input, data),
        Data::Union(_) => Err(Error::new_spanned(&input.ident, "a union has no type in a file")),
    };
    tokens.unwrap_or_else(Error::into_compile_error).into()
}

/// The name that an attribute `#[h5(rename = "name")]` gives, or else `name`.
fn name(attributes: &[Attribute], name: String) -> Result<String> {
    let mut name = name;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("h5")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("rename") {
                return Err(meta.error("expected `rename = \"name\"`"));
            }
            name = meta.value()?.parse::<LitStr>()?.value();
            Ok(())
        })?;
    }
    Ok(name)
}

fn unique(names: &[String], at: &Ident) -> Result<()> {
    match names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
        Some((_, name)) => Err(Error::new_spanned(at, format!("two members are called {name:?}"))),
        None => Ok(()),
    }
}

fn compound(input: &DeriveInput, fields: &Fields) -> Result<Tokens> {
    let ident = &input.ident;
    if fields.is_empty() {
        return Err(Error::new_spanned(ident, "a compound type has at least one member"));
    }
    let members: Vec<Member> = fields.members().collect();
    let types: Vec<&Type> = fields.iter().map(|field| &field.ty).collect();
    let text = |member: &Member| match member {
        Member::Named(ident) => ident.to_string().trim_start_matches("r#").to_owned(),
        Member::Unnamed(index) => index.index.to_string(),
    };
    let names: Vec<String> =
        fields.iter().zip(&members).map(|(field, member)| name(&field.attrs, text(member))).collect::<Result<_>>()?;
    unique(&names, ident)?;
    let memory = LitStr::new(&ident.to_string(), Span::call_site());

    let mut generics = input.generics.clone();
    let where_clause = generics.make_where_clause();
    for ty in &types {
        where_clause.predicates.push(syn::parse_quote!(#ty: ::h5live::H5Type));
    }
    let plain = input.generics.params.is_empty();
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let where_clause = if plain { None } else { where_clause };

    let decoding = compound_decoding(&members, &types, &names, &memory);
    let encoding = compound_encoding(&members, &types, &names, &memory);
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::h5live::H5Type for #ident #type_generics #where_clause {
            type Decoder = (#(::h5live::derived::MemberCodec<<#types as ::h5live::H5Type>::Decoder>,)*);
            type Encoder = (bool, (#(::h5live::derived::MemberCodec<<#types as ::h5live::H5Type>::Encoder>,)*));

            fn datatype() -> ::h5live::Datatype {
                ::h5live::derived::packed_compound(::std::vec![#((#names, <#types as ::h5live::H5Type>::datatype())),*])
            }

            fn placeholder() -> Self {
                Self { #(#members: <#types as ::h5live::H5Type>::placeholder(),)* }
            }

            #decoding

            #encoding
        }
    })
}

fn indexes(members: &[Member]) -> Vec<Index> {
    (0..members.len()).map(Index::from).collect()
}

/// The functions that make a struct of an element.
fn compound_decoding(members: &[Member], types: &[&Type], names: &[String], memory: &LitStr) -> Tokens {
    let at = indexes(members);
    quote! {
        fn decoder(
            file: &::h5live::Datatype,
        ) -> ::std::result::Result<Self::Decoder, ::h5live::ConvertError> {
            ::std::result::Result::Ok((
                #(::h5live::derived::MemberCodec::decoder::<#types>(file, #names, #memory)?,)*
            ))
        }

        #[inline]
        fn decode(
            decoder: &Self::Decoder,
            element: &[u8],
            into: &mut Self,
            context: ::h5live::ConversionContext<'_>,
        ) -> ::std::result::Result<(), ::h5live::ConvertError> {
            #(decoder.#at.decode(element, &mut into.#members, context)?;)*
            ::std::result::Result::Ok(())
        }

        fn decode_slice(
            decoder: &Self::Decoder,
            elements: &[u8],
            size: usize,
            into: &mut [Self],
            context: ::h5live::ConversionContext<'_>,
        ) -> ::std::result::Result<(), ::h5live::ConvertError> {
            let size = ::std::cmp::Ord::max(size, 1);
            let blocks = elements.chunks(size.saturating_mul(::h5live::derived::BLOCK_ELEMENTS));
            for (elements, into) in ::std::iter::Iterator::zip(blocks, into.chunks_mut(::h5live::derived::BLOCK_ELEMENTS)) {
                #(decoder.#at.decode_column(
                    elements,
                    size,
                    ::std::iter::Iterator::map(into.iter_mut(), |value| &mut value.#members),
                    context,
                )?;)*
            }
            ::std::result::Result::Ok(())
        }
    }
}

/// The functions that make an element of a struct.
fn compound_encoding(members: &[Member], types: &[&Type], names: &[String], memory: &LitStr) -> Tokens {
    let at = indexes(members);
    quote! {
        fn encoder(
            file: &::h5live::Datatype,
        ) -> ::std::result::Result<Self::Encoder, ::h5live::ConvertError> {
            let members = (
                #(::h5live::derived::MemberCodec::encoder::<#types>(file, #names, #memory)?,)*
            );
            let covered = 0usize #(+ members.#at.fully_overwritten_len::<#types>())*;
            ::std::result::Result::Ok((covered != file.size() as usize, members))
        }

        #[inline]
        fn encode(
            &self,
            encoder: &Self::Encoder,
            element: &mut [u8],
            context: ::h5live::ConversionContext<'_>,
        ) -> ::std::result::Result<(), ::h5live::ConvertError> {
            #(encoder.1.#at.encode(&self.#members, element, context)?;)*
            ::std::result::Result::Ok(())
        }

        fn may_refuse(encoder: &Self::Encoder) -> bool {
            false #(|| encoder.1.#at.may_refuse::<#types>())*
        }

        fn leaves_bytes_unchanged(encoder: &Self::Encoder) -> bool {
            encoder.0
        }
    }
}

/// Bytes and sign of the integer that an enum is represented by.
fn repr(attributes: &[Attribute]) -> Result<(u32, bool)> {
    let mut found = (4, true);
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            let ident = meta.path.get_ident().map(Ident::to_string).unwrap_or_default();
            found = match ident.as_str() {
                "u8" => (1, false),
                "i8" => (1, true),
                "u16" => (2, false),
                "i16" => (2, true),
                "u32" => (4, false),
                "i32" => (4, true),
                "u64" | "usize" => (8, false),
                "i64" | "isize" => (8, true),
                _ => found,
            };
            Ok(())
        })?;
    }
    Ok(found)
}

fn enumeration(input: &DeriveInput, data: &DataEnum) -> Result<Tokens> {
    let ident = &input.ident;
    if data.variants.is_empty() {
        return Err(Error::new_spanned(ident, "an enum type has at least one value"));
    }
    if let Some(variant) = data.variants.iter().find(|variant| !variant.fields.is_empty()) {
        return Err(Error::new_spanned(variant, "a value of an enum type has no data"));
    }
    let variants: Vec<&Ident> = data.variants.iter().map(|variant| &variant.ident).collect();
    let names: Vec<String> =
        data.variants.iter().map(|variant| name(&variant.attrs, variant.ident.to_string())).collect::<Result<_>>()?;
    unique(&names, ident)?;
    let (size, signed) = repr(&input.attrs)?;
    let first = variants[0];
    let memory = LitStr::new(&ident.to_string(), Span::call_site());
    let table = format_ident!("VARIANTS");
    let codec = enumeration_codec(ident, &variants, &names, (&table, &memory));

    Ok(quote! {
        #[automatically_derived]
        const _: () = {
            const #table: &[(&str, i64)] = &[#((#names, #ident::#variants as i64)),*];

            impl ::h5live::H5Type for #ident {
                type Decoder = ::h5live::derived::EnumCodec<<i64 as ::h5live::H5Type>::Decoder>;
                type Encoder = ::h5live::derived::EnumCodec<<i64 as ::h5live::H5Type>::Encoder>;

                fn datatype() -> ::h5live::Datatype {
                    ::h5live::derived::enumeration(#table, #size, #signed)
                }

                fn placeholder() -> Self {
                    #ident::#first
                }

                #codec
            }
        };
    })
}

/// The functions that make a value of an enum of an element, and the other way round.
fn enumeration_codec(
    ident: &Ident,
    variants: &[&Ident],
    names: &[String],
    (table, memory): (&Ident, &LitStr),
) -> Tokens {
    let at = 0..variants.len();
    quote! {
        fn decoder(
            file: &::h5live::Datatype,
        ) -> ::std::result::Result<Self::Decoder, ::h5live::ConvertError> {
            ::h5live::derived::EnumCodec::decoder(file, #table, #memory)
        }

        fn decode(
            decoder: &Self::Decoder,
            element: &[u8],
            into: &mut Self,
            context: ::h5live::ConversionContext<'_>,
        ) -> ::std::result::Result<(), ::h5live::ConvertError> {
            const ALL: &[#ident] = &[#(#ident::#variants),*];
            let variant = decoder.decode_variant(element, context)?;
            *into = ::std::clone::Clone::clone(&ALL[variant]);
            ::std::result::Result::Ok(())
        }

        fn encoder(
            file: &::h5live::Datatype,
        ) -> ::std::result::Result<Self::Encoder, ::h5live::ConvertError> {
            ::h5live::derived::EnumCodec::encoder(file, #table, #memory)
        }

        fn encode(
            &self,
            encoder: &Self::Encoder,
            element: &mut [u8],
            context: ::h5live::ConversionContext<'_>,
        ) -> ::std::result::Result<(), ::h5live::ConvertError> {
            let (variant, name) = match self {
                #(#ident::#variants => (#at, #names),)*
            };
            encoder.encode_variant(variant, name, element, context)
        }
    }
}
