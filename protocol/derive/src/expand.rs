//! The implementations of `Message` and `Default`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Result};

use crate::attributes::MessageAttributes;
use crate::field::{self, Field};
use crate::step::Step;

/// Writes the implementations, or says what is wrong with the schema.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(input.ident.span(), "a message is a struct"));
    };
    let named = match &data.fields {
        Fields::Named(named) => named.named.iter().collect(),
        Fields::Unit => Vec::new(),
        Fields::Unnamed(_) => return Err(Error::new(input.ident.span(), "the fields of a message have names")),
    };
    if !input.generics.params.is_empty() {
        return Err(Error::new(input.ident.span(), "a message has no parameters"));
    }
    let message = MessageAttributes::parse(&input.attrs, &input.ident)?;
    let fields = named.iter().map(|field| Field::parse(field, &message)).collect::<Result<Vec<_>>>()?;
    refuse_equal_tags(&fields)?;

    let Parts { default, size, put, take, request, nested } = Parts::of(input, &message, &fields);
    let (ident, name) = (&input.ident, input.ident.to_string());
    let schema_name = message.name.as_ref().map_or_else(|| name.clone(), syn::LitStr::value);
    let min = message.versions.min;
    let versions = spoken(&message);
    let flexible_from = field::flexible(message.flexible);
    let flexible = match message.flexible {
        Some(first) if first <= min => quote!(true),
        Some(first) => quote!(version >= #first),
        None => quote!(false),
    };
    let check = |error: TokenStream| {
        quote! {
            const SPOKEN: ::krafka_protocol::schema::Versions = #versions;
            if !SPOKEN.contains(version) {
                return ::core::result::Result::Err(
                    ::krafka_protocol::wire::#error::version(#name, version, SPOKEN.min, SPOKEN.max),
                );
            }
        }
    };
    let (check_encode, check_decode) = (check(quote!(EncodeError)), check(quote!(DecodeError)));
    let key = match message.key {
        Some(key) => quote!(::core::option::Option::Some(#key)),
        None => quote!(::core::option::Option::None),
    };
    let schemas = fields.iter().map(Field::schema);
    let (indexes, values) = (0..fields.len(), fields.iter().map(Field::value));
    let hints = fields.iter().filter(|field| field.tag.is_none()).map(Field::hint);
    let min_sizes = fields.iter().map(|field| field.min_size(&message));
    // A response has a thousand of them: out of line, each pays for saving the registers of a function that long.
    let inline_fill = fields.iter().any(Field::is_record_set).then(|| quote!(#[inline]));

    Ok(quote! {
        #[automatically_derived]
        impl ::core::default::Default for #ident {
            fn default() -> Self {
                <Self as ::krafka_protocol::Message>::DEFAULT
            }
        }
        #request
        #nested

        #[automatically_derived]
        impl ::krafka_protocol::Message for #ident {
            const SCHEMA: &'static ::krafka_protocol::schema::MessageSchema =
                &::krafka_protocol::schema::MessageSchema {
                    name: #schema_name,
                    key: #key,
                    versions: #versions,
                    flexible: #flexible_from,
                    fields: &[#(#schemas),*],
                };
            const DEFAULT: Self = #default;

            #[allow(unused_variables, unused_mut)]
            fn size(&self, version: i16) -> ::core::result::Result<usize, ::krafka_protocol::wire::EncodeError> {
                #check_encode
                let flexible = #flexible;
                let mut size = 0usize;
                #size
                ::core::result::Result::Ok(size)
            }

            #[allow(unused_variables)]
            fn encode(
                &self,
                out: &mut ::krafka_protocol::wire::Writer,
                version: i16,
            ) -> ::core::result::Result<(), ::krafka_protocol::wire::EncodeError> {
                #check_encode
                let flexible = #flexible;
                #put
                ::core::result::Result::Ok(())
            }

            #inline_fill
            #[allow(unused_variables)]
            fn fill(
                &mut self,
                input: &mut ::krafka_protocol::wire::Reader,
                version: i16,
            ) -> ::core::result::Result<(), ::krafka_protocol::wire::DecodeError> {
                #check_decode
                let flexible = #flexible;
                #take
                ::core::result::Result::Ok(())
            }

            fn hint(&self) -> usize {
                0usize #(.saturating_add(#hints))* .saturating_add(1)
            }

            #[allow(unused_mut)]
            fn min_size(version: i16) -> usize {
                let flexible = #flexible;
                let mut size = usize::from(flexible);
                #(#min_sizes)*
                size
            }

            fn field(&self, index: usize) -> ::core::option::Option<::krafka_protocol::value::Value<'_>> {
                match index {
                    #(#indexes => ::core::option::Option::Some(#values),)*
                    _ => ::core::option::Option::None,
                }
            }
        }
    })
}

/// The pieces of the implementations that are a sequence over the fields.
struct Parts {
    default: TokenStream,
    size: TokenStream,
    put: TokenStream,
    take: TokenStream,
    request: TokenStream,
    nested: TokenStream,
}

impl Parts {
    fn of(input: &DeriveInput, message: &MessageAttributes, fields: &[Field<'_>]) -> Self {
        let ident = &input.ident;
        let structure = ident.to_string();
        let (plain, tagged) = partition(fields);

        let names = fields.iter().map(|field| field.ident);
        let defaults = fields.iter().map(Field::default_value);
        let default = quote!(Self { #(#names: #defaults),* });

        let request = match (&message.response, message.key) {
            (Some(response), Some(key)) => {
                let versions = spoken(message);
                quote! {
                    #[automatically_derived]
                    impl ::krafka_protocol::Request for #ident {
                        const KEY: ::krafka_protocol::ApiKey = ::krafka_protocol::ApiKey::known(#key);
                        const VERSIONS: ::krafka_protocol::Versions = #versions;
                        type Response = #response;
                    }
                }
            }
            _ => TokenStream::new(),
        };

        Self {
            default,
            size: sizes(&structure, message, &plain, &tagged),
            put: puts(&structure, message, &plain, &tagged),
            take: takes(&structure, message, &plain, &tagged),
            request,
            nested: fields.iter().filter_map(|field| field.check_nested(message)).collect(),
        }
    }
}

/// The versions that are encoded and decoded, as an expression: the runtime knows whether the unstable one is.
fn spoken(message: &MessageAttributes) -> TokenStream {
    let stable = field::versions(message.stable);
    match message.unstable {
        Some(version) => quote!(#stable.with_unstable(#version)),
        None => stable,
    }
}

fn sizes(structure: &str, message: &MessageAttributes, plain: &[&Field<'_>], tagged: &[&Field<'_>]) -> TokenStream {
    let mut out: TokenStream = Step::split(plain).map(|step| step.size(structure, message)).collect();
    if message.flexible.is_none() {
        return out;
    }
    let mut tags = TokenStream::new();
    for field in tagged {
        let (tag, size, is_default) = (field.tag.expect("a tagged field"), field.size(structure), field.is_default());
        out.extend(refuse_where_absent(field, structure, message));
        let present = field.is_present(message);
        tags.extend(quote! {
            if #present && !(#is_default) {
                let value = #size;
                tags += 1;
                size += ::krafka_protocol::wire::varint_size(#tag)
                    + ::krafka_protocol::wire::varint_size(value as u32)
                    + value;
            }
        });
    }
    out.extend(quote! {
        if flexible {
            let mut tags = 0u32;
            #tags
            size += ::krafka_protocol::wire::varint_size(tags);
        }
    });
    out
}

fn puts(structure: &str, message: &MessageAttributes, plain: &[&Field<'_>], tagged: &[&Field<'_>]) -> TokenStream {
    let mut out: TokenStream = Step::split(plain).map(|step| step.put(structure, message)).collect();
    if message.flexible.is_none() {
        return out;
    }
    let (mut counts, mut values) = (TokenStream::new(), TokenStream::new());
    for field in tagged {
        let (tag, is_default, present) =
            (field.tag.expect("a tagged field"), field.is_default(), field.is_present(message));
        let (size, put) = (field.size(structure), field.put(structure));
        out.extend(refuse_where_absent(field, structure, message));
        let is_set = field.local();
        counts.extend(quote!(let #is_set = #present && (!(#is_default) || out.had_tag(#tag));));
        values.extend(quote! {
            if #is_set {
                let value = out.open_tag(&mut tags, #tag, #size);
                #put;
                out.close_tag(value);
            }
        });
    }
    let is_set = tagged.iter().map(|field| field.local());
    let tags = if tagged.is_empty() {
        quote!(out.put_no_tags();)
    } else {
        quote! {
            #counts
            let mut tags = out.open_tags(0 #(+ u32::from(#is_set))*);
            #values
            out.close_tags(&tags);
        }
    };
    out.extend(quote!(if flexible { #tags }));
    out
}

fn takes(structure: &str, message: &MessageAttributes, plain: &[&Field<'_>], tagged: &[&Field<'_>]) -> TokenStream {
    let steps = Step::split(plain).map(|step| step.fill(structure, message));
    let mut out = TokenStream::new();
    if plain.iter().any(|field| field.is_record_set()) {
        out.extend(quote!(let whole = input.whole();));
    }
    out.extend(steps);
    if message.flexible.is_none() {
        return out;
    }
    let at = quote!(map_err(|error| error.at(#structure, "tagged fields", version)));
    // A tag may come twice: then the last one counts, and nothing of the first is left.
    let arms = tagged.iter().map(|field| {
        let (ident, take, present) = (field.ident, field.take(structure), field.is_present(message));
        let tag = field.tag.expect("a tagged field");
        let is_default = field.is_default();
        quote! {
            #tag if #present => {
                self.#ident = #take;
                if input.keeps_tags() {
                    input.note_tag(&mut tags, #tag, #is_default).#at?;
                }
            }
        }
    });
    let tags = if tagged.is_empty() {
        quote!(input.pass_tags().#at?;)
    } else {
        quote! {
            if !input.pass_no_tags() {
                let mut tags = input.open_tags().#at?;
                for _ in 0..tags.count {
                    let tag = input.open_tag().#at?;
                    match tag.number {
                        #(#arms)*
                        _ => input.pass_tag(&mut tags, &tag).#at?,
                    }
                    input.close_tag(tag).#at?;
                }
            }
        }
    };
    out.extend(quote!(if flexible { #tags }));
    out
}

/// A check that nobody set a tagged field where the version has it not.
fn refuse_where_absent(field: &Field<'_>, structure: &str, message: &MessageAttributes) -> TokenStream {
    match field.refuse_if_set(structure) {
        Some(refuse) if field.is_partial(message) => {
            let present = field.is_present(message);
            quote!(if !(#present) { #refuse })
        }
        _ => TokenStream::new(),
    }
}

/// The fields of the body in the struct's order, and the tagged ones in that of their tags.
fn partition<'a, 'b>(fields: &'b [Field<'a>]) -> (Vec<&'b Field<'a>>, Vec<&'b Field<'a>>) {
    let (mut tagged, plain): (Vec<_>, Vec<_>) = fields.iter().partition(|field| field.tag.is_some());
    tagged.sort_by_key(|field| field.tag);
    (plain, tagged)
}

fn refuse_equal_tags(fields: &[Field<'_>]) -> Result<()> {
    for (index, field) in fields.iter().enumerate() {
        let earlier = fields[..index].iter().find(|earlier| field.tag.is_some() && earlier.tag == field.tag);
        if let (Some(earlier), Some(tag)) = (earlier, field.tag) {
            return Err(Error::new(field.tag_span, format!("tag {tag} is taken by `{}`", earlier.ident)));
        }
    }
    Ok(())
}
