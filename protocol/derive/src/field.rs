//! One field: its type, its attributes, and the Rust that reads and writes it.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, Expr, GenericArgument, Ident, Lit, LitInt, PathArguments, Result, Type};

use crate::attributes::{FieldAttributes, MessageAttributes, Range, is_null, is_number, text};

/// A field whose attributes make sense.
pub(crate) struct Field<'a> {
    pub(crate) ident: &'a Ident,
    /// The type, or what is inside its `Option`.
    inner: &'a Type,
    /// Where it may be null; `None` if it is no `Option`.
    nullable: Option<Range>,
    pub(crate) versions: Range,
    pub(crate) tag: Option<u32>,
    pub(crate) tag_span: proc_macro2::Span,
    ignorable: bool,
    default: Default,
    records: bool,
}

enum Default {
    Zero,
    Null,
    Bool(TokenStream),
    Int(TokenStream),
    Float(TokenStream),
    Text(TokenStream),
}

impl<'a> Field<'a> {
    pub(crate) fn parse(field: &'a syn::Field, message: &MessageAttributes) -> Result<Self> {
        let ident = field.ident.as_ref().expect("only named fields come here");
        let attributes = FieldAttributes::parse(&field.attrs)?;
        let option = inside_option(&field.ty);
        let inner = option.unwrap_or(&field.ty);
        let records = attributes.records.is_some();
        if records && !is_named(inner, "Bytes") {
            return Err(Error::new(field.ty.span(), "`records` are `Bytes`"));
        }

        let versions = match &attributes.versions {
            Some(range) => range.within(message.versions, "the message's versions")?,
            None => message.versions,
        };
        let nullable = match (option, &attributes.nullable) {
            (Some(_), Some(range)) => Some(range.within(versions, "the field's versions")?),
            (Some(_), None) => Some(versions),
            (None, Some(_)) => return Err(Error::new(field.ty.span(), "a nullable field is an `Option`")),
            (None, None) => None,
        };
        let default = match &attributes.default {
            // Java's record sets are null until they are set, though their schemas do not say so. Ours are empty where
            // some version has no null: a message at its default can be encoded in all of them.
            None if records && nullable == Some(versions) => Default::Null,
            None => Default::Zero,
            Some(expr) => parse_default(expr, inner, option.is_some())?,
        };
        if matches!(default, Default::Null) && nullable != Some(versions) {
            let span = attributes.default.as_ref().map_or_else(|| field.ty.span(), Spanned::span);
            return Err(Error::new(span, "null is the default, and some of the field's versions have no null"));
        }
        let tag = attributes.tag.as_ref().map(|tag| parse_tag(tag, versions, message)).transpose()?;
        if let (Some(tag), Some(range)) = (&attributes.tag, nullable)
            && is_structure(inner)
            && range != versions
        {
            return Err(Error::new(tag.span(), "a structure that is a tagged field can be null always or never"));
        }

        let tag_span = attributes.tag.as_ref().map_or_else(|| ident.span(), Spanned::span);
        let ignorable = attributes.ignorable.is_some();
        Ok(Self { ident, inner, nullable, versions, tag, tag_span, ignorable, default, records })
    }

    /// The name in the schema and in errors.
    pub(crate) fn name(&self) -> String {
        self.ident.unraw().to_string()
    }

    /// The name of the local variable while it is being decoded.
    pub(crate) fn local(&self) -> Ident {
        format_ident!("field_{}", self.ident.unraw())
    }

    /// Whether some version of the message lacks the field.
    pub(crate) fn is_partial(&self, message: &MessageAttributes) -> bool {
        self.versions != message.versions
    }

    /// An expression for "this version has the field", with as few comparisons as will do.
    pub(crate) fn is_present(&self, message: &MessageAttributes) -> TokenStream {
        contains(self.versions, message.versions)
    }

    /// An expression for "this version, which has the field, also has null for it".
    fn is_nullable(&self) -> TokenStream {
        self.nullable.map_or_else(|| quote!(false), |range| contains(range, self.versions))
    }

    /// Whether it is a record set that every version has null for.
    pub(crate) fn is_record_set(&self) -> bool {
        self.records && self.nullable == Some(self.versions) && self.tag.is_none()
    }

    /// Whether Kafka has a form of its own for the field.
    fn is_tagged_option_of_structure(&self) -> bool {
        self.tag.is_some() && self.nullable.is_some() && is_structure(self.inner)
    }

    /// The value when nobody set it.
    pub(crate) fn default_value(&self) -> TokenStream {
        let inner = self.inner;
        let value = match &self.default {
            Default::Null => return quote!(::core::option::Option::None),
            Default::Zero => quote!(<#inner as ::krafka_protocol::wire::Wire>::EMPTY),
            Default::Text(text) => quote!(<#inner>::from_static(#text)),
            Default::Bool(expr) | Default::Int(expr) | Default::Float(expr) => quote!(#expr),
        };
        if self.nullable.is_some() { quote!(::core::option::Option::Some(#value)) } else { value }
    }

    /// An expression for "nobody set it".
    pub(crate) fn is_default(&self) -> TokenStream {
        let Self { ident, inner, .. } = self;
        let equals = |value: TokenStream| match &self.default {
            Default::Zero => quote!(<#inner as ::krafka_protocol::wire::Wire>::is_zero(#value)),
            Default::Text(expr) | Default::Bool(expr) | Default::Int(expr) | Default::Float(expr) => {
                quote!(*#value == *&#expr)
            }
            Default::Null => unreachable!("null is compared with is_none"),
        };
        match (&self.default, &self.nullable) {
            (Default::Null, _) => quote!(self.#ident.is_none()),
            (_, None) => equals(quote!(&self.#ident)),
            (_, Some(_)) => {
                let inside = equals(quote!(value));
                quote!(self.#ident.as_ref().is_some_and(|value| #inside))
            }
        }
    }

    /// The statement for a version that lacks the field, or nothing where a value may be dropped.
    pub(crate) fn refuse_if_set(&self, structure: &str) -> Option<TokenStream> {
        let (is_default, name) = (self.is_default(), self.name());
        (!self.ignorable).then(|| {
            quote! {
                if !(#is_default) {
                    return ::core::result::Result::Err(
                        ::krafka_protocol::wire::EncodeError::unsupported(#structure, #name, version),
                    );
                }
            }
        })
    }

    /// The number of bytes, if every value takes as many and there is always one.
    pub(crate) fn fixed_size(&self) -> Option<usize> {
        let (_, size) = FIXED.iter().find(|(name, _)| is_named(self.inner, name))?;
        (self.nullable.is_none() && self.tag.is_none()).then_some(*size)
    }

    /// The statement that writes the value of fixed size to its place in `run`.
    pub(crate) fn store(&self, from: usize, to: usize) -> TokenStream {
        let Self { ident, inner, .. } = self;
        quote!(<#inner as ::krafka_protocol::wire::Fixed>::store(self.#ident, &mut run[#from..#to]);)
    }

    /// The statement that reads the value of fixed size from its place in `run`.
    pub(crate) fn load(&self, from: usize, to: usize) -> TokenStream {
        let Self { ident, inner, .. } = self;
        quote!(self.#ident = <#inner as ::krafka_protocol::wire::Fixed>::load(&run[#from..#to]);)
    }

    /// The expression that says about how large the value is.
    pub(crate) fn hint(&self) -> TokenStream {
        let Self { ident, inner, .. } = self;
        let hint = quote!(<#inner as ::krafka_protocol::wire::Wire>::hint);
        if self.nullable.is_some() {
            quote!(self.#ident.as_ref().map_or(1, #hint))
        } else {
            quote!(#hint(&self.#ident))
        }
    }

    /// The expression that gives the size of the value.
    pub(crate) fn size(&self, structure: &str) -> TokenStream {
        let Self { ident, inner, .. } = self;
        let call = if self.is_tagged_option_of_structure() {
            quote!(::krafka_protocol::wire::size_tagged_structure(&self.#ident, version))
        } else if self.nullable.is_some() {
            let nullable = self.is_nullable();
            quote!(::krafka_protocol::wire::size_option(&self.#ident, version, flexible, #nullable))
        } else {
            quote!(<#inner as ::krafka_protocol::wire::Wire>::size(&self.#ident, version, flexible))
        };
        self.at(structure, call)
    }

    /// The expression that writes the value.
    pub(crate) fn put(&self, structure: &str) -> TokenStream {
        let Self { ident, inner, .. } = self;
        let call = if self.is_tagged_option_of_structure() {
            quote!(::krafka_protocol::wire::put_tagged_structure(&self.#ident, out, version))
        } else if self.nullable.is_some() {
            let nullable = self.is_nullable();
            quote!(::krafka_protocol::wire::put_option(&self.#ident, out, version, flexible, #nullable))
        } else {
            quote!(<#inner as ::krafka_protocol::wire::Wire>::put(&self.#ident, out, version, flexible))
        };
        self.at(structure, call)
    }

    /// The expression that reads the value.
    pub(crate) fn take(&self, structure: &str) -> TokenStream {
        let inner = self.inner;
        let call = if self.is_tagged_option_of_structure() {
            quote!(::krafka_protocol::wire::take_tagged_structure::<#inner>(input, version))
        } else if self.nullable.is_some() {
            let nullable = self.is_nullable();
            quote!(::krafka_protocol::wire::take_option::<#inner>(input, version, flexible, #nullable))
        } else {
            quote!(<#inner as ::krafka_protocol::wire::Wire>::take(input, version, flexible))
        };
        self.at(structure, call)
    }

    /// The statement that reads the value, where the field is at its default.
    pub(crate) fn fill(&self, structure: &str) -> TokenStream {
        let Self { ident, inner, .. } = self;
        if self.is_record_set() {
            let call = quote!(::krafka_protocol::wire::fill_records(&mut self.#ident, whole, input, flexible));
            let fill = self.at(structure, call);
            return quote!(#fill;);
        }
        if self.nullable.is_some() {
            let nullable = self.is_nullable();
            let call = quote! {
                ::krafka_protocol::wire::fill_option::<#inner>(
                    &mut self.#ident, input, version, flexible, #nullable,
                )
            };
            let fill = self.at(structure, call);
            return quote!(#fill;);
        }
        let call = quote! {
            <#inner as ::krafka_protocol::wire::Wire>::fill(&mut self.#ident, input, version, flexible)
        };
        let fill = self.at(structure, call);
        quote!(#fill;)
    }

    /// Adds the field to the path of an error.
    fn at(&self, structure: &str, call: TokenStream) -> TokenStream {
        let name = self.name();
        quote!(#call.map_err(|error| error.at(#structure, #name, version))?)
    }

    /// What the field adds to the least size of the structure.
    pub(crate) fn min_size(&self, message: &MessageAttributes) -> TokenStream {
        let inner = self.inner;
        if self.tag.is_some() {
            return TokenStream::new();
        }
        let size = match self.nullable {
            // Null takes one byte, or as many as a length.
            Some(_) if !is_plain(inner) && !is_named(inner, "Vec") => quote!(1),
            _ => quote!(<#inner as ::krafka_protocol::wire::Wire>::min_size(version, flexible)),
        };
        if self.is_partial(message) {
            let present = self.is_present(message);
            quote!(if #present { size += #size; })
        } else {
            quote!(size += #size;)
        }
    }

    /// The field's schema.
    pub(crate) fn schema(&self) -> TokenStream {
        let (name, inner, ignorable) = (self.name(), self.inner, self.ignorable);
        let versions = versions(self.versions);
        let field_type = if self.records {
            quote!(::krafka_protocol::schema::FieldType::Records)
        } else {
            quote!(<#inner as ::krafka_protocol::wire::Wire>::TYPE)
        };
        let nullable = match self.nullable {
            Some(range) => {
                let range = self::versions(range);
                quote!(::core::option::Option::Some(#range))
            }
            None => quote!(::core::option::Option::None),
        };
        let tag = match self.tag {
            Some(tag) => quote!(::core::option::Option::Some(#tag)),
            None => quote!(::core::option::Option::None),
        };
        let default = match &self.default {
            Default::Zero => quote!(Zero),
            Default::Null => quote!(Null),
            Default::Bool(value) => quote!(Bool(#value)),
            Default::Int(value) => quote!(Int((#value) as i64)),
            Default::Float(value) => quote!(Float(#value)),
            Default::Text(value) => quote!(Str(#value)),
        };
        quote! {
            ::krafka_protocol::schema::FieldSchema {
                name: #name,
                field_type: #field_type,
                versions: #versions,
                nullable: #nullable,
                tag: #tag,
                ignorable: #ignorable,
                default: ::krafka_protocol::schema::FieldDefault::#default,
            }
        }
    }

    /// The expression that gives the value to code that does not know its type.
    pub(crate) fn value(&self) -> TokenStream {
        let Self { ident, inner, .. } = self;
        let value = quote!(<#inner as ::krafka_protocol::wire::Wire>::value);
        if self.nullable.is_some() {
            quote!(self.#ident.as_ref().map_or(::krafka_protocol::value::Value::Null, #value))
        } else {
            quote!(#value(&self.#ident))
        }
    }

    /// A check, at compile time, that a structure inside knows the field's versions and their encoding.
    pub(crate) fn check_nested(&self, message: &MessageAttributes) -> Option<TokenStream> {
        let inner = self.inner;
        let versions = versions(self.versions);
        let flexible = flexible(message.flexible);
        (!is_plain(inner)).then(|| {
            quote! {
                const _: () = ::krafka_protocol::schema::FieldType::assert_fits(
                    &<#inner as ::krafka_protocol::wire::Wire>::TYPE, #versions, #flexible,
                );
            }
        })
    }
}

/// The types that are no structure and have none inside.
const PLAIN: [&str; 11] = ["bool", "i8", "i16", "u16", "i32", "u32", "i64", "f64", "Str", "Bytes", "Uuid"];

/// The types whose values all take the same number of bytes.
const FIXED: [(&str, usize); 9] =
    [("bool", 1), ("i8", 1), ("i16", 2), ("u16", 2), ("i32", 4), ("u32", 4), ("i64", 8), ("f64", 8), ("Uuid", 16)];

const INTEGERS: [&str; 6] = ["i8", "i16", "u16", "i32", "u32", "i64"];

/// Whether a field of the type is one structure.
fn is_structure(ty: &Type) -> bool {
    !is_plain(ty) && !is_named(ty, "Vec")
}

fn is_plain(ty: &Type) -> bool {
    PLAIN.iter().any(|name| is_named(ty, name))
}

fn parse_tag(tag: &LitInt, versions: Range, message: &MessageAttributes) -> Result<u32> {
    match message.flexible {
        Some(first) if versions.min >= first => tag.base10_parse(),
        Some(first) => {
            let what = format!("version {} of this field is before the first flexible one, {first}", versions.min);
            Err(Error::new(tag.span(), what))
        }
        None => Err(Error::new(tag.span(), "a message that is never flexible has no tags")),
    }
}

fn parse_default(expr: &Expr, inner: &Type, is_option: bool) -> Result<Default> {
    if is_null(expr) {
        if !is_option {
            return Err(Error::new(expr.span(), "only an `Option` can be null"));
        }
        return Ok(Default::Null);
    }
    let is_bool = matches!(expr, Expr::Lit(lit) if matches!(lit.lit, Lit::Bool(_)));
    let is_integer = INTEGERS.iter().any(|name| is_named(inner, name));
    if is_named(inner, "bool") && is_bool {
        Ok(Default::Bool(expr.to_token_stream()))
    } else if is_integer && is_number(expr) {
        Ok(Default::Int(expr.to_token_stream()))
    } else if is_named(inner, "f64") && is_number(expr) {
        Ok(Default::Float(expr.to_token_stream()))
    } else if is_named(inner, "Str") && text(expr).is_some() {
        Ok(Default::Text(expr.to_token_stream()))
    } else {
        Err(Error::new(expr.span(), "this is no default of the field's type"))
    }
}

/// Whether a type's path ends with `name`.
fn is_named(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|segment| segment.ident == name))
}

/// `T` of `Option<T>`.
fn inside_option(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let segment = path.path.segments.last().filter(|segment| segment.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) => Some(inner),
        _ => None,
    }
}

/// An expression for "`version` is in `inner`", given that it is in `outer`.
fn contains(inner: Range, outer: Range) -> TokenStream {
    let (min, max) = (inner.min, inner.max);
    match (min > outer.min, max < outer.max) {
        (false, false) => quote!(true),
        (true, false) => quote!(version >= #min),
        (false, true) => quote!(version <= #max),
        (true, true) => quote!((#min..=#max).contains(&version)),
    }
}

/// The range as an expression.
pub(crate) fn versions(range: Range) -> TokenStream {
    let (min, max) = (range.min, range.max);
    quote!(::krafka_protocol::schema::Versions::new(#min, #max))
}

/// The first flexible version as an expression.
pub(crate) fn flexible(first: Option<i16>) -> TokenStream {
    match first {
        Some(first) => quote!(::core::option::Option::Some(#first)),
        None => quote!(::core::option::Option::None),
    }
}
