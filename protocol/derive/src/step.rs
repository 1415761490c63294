//! What is read and written at once: a run of neighbours of fixed size, or one field of any other kind.
//!
//! A run is one piece of the frame, with one check whether it is there: half of the fields of Kafka's structures are
//! numbers, and a check for each costs more than the number. Where later neighbours came in later versions, the run is
//! one piece in a version that has them all, and one for each of its rungs in the others.

use proc_macro2::TokenStream;
use quote::quote;

use crate::attributes::MessageAttributes;
use crate::field::Field;

/// One field; or several of fixed size, of which the later ones came in the same version or a later one, to stay as
/// long.
pub(crate) struct Step<'b, 'a> {
    fields: &'b [&'b Field<'a>],
    /// The number of bytes of each field, if they are a run.
    sizes: Option<Vec<usize>>,
}

impl<'b, 'a> Step<'b, 'a> {
    /// Splits the fields of a body, in the order of the wire.
    pub(crate) fn split(fields: &'b [&'b Field<'a>]) -> impl Iterator<Item = Self> {
        let is_run = |one: &&Field<'a>, next: &&Field<'a>| {
            one.fixed_size().is_some()
                && next.fixed_size().is_some()
                && one.versions.min <= next.versions.min
                && one.versions.max == next.versions.max
        };
        fields.chunk_by(is_run).map(Self::of)
    }

    fn of(fields: &'b [&'b Field<'a>]) -> Self {
        Self { fields, sizes: fields.iter().map(|field| field.fixed_size()).collect() }
    }

    /// The parts of a run whose fields came in different versions; nothing if it has no such parts.
    fn rungs(&self) -> Vec<Self> {
        let rungs: Vec<_> = self.fields.chunk_by(|one, next| one.versions == next.versions).map(Self::of).collect();
        if rungs.len() > 1 { rungs } else { Vec::new() }
    }

    /// `whole` in a version that has all fields of the run, `parts` in the others.
    fn climb(&self, message: &MessageAttributes, whole: &TokenStream, parts: &[TokenStream]) -> TokenStream {
        let has_all = self.fields[self.fields.len() - 1].is_present(message);
        quote! {
            if #has_all {
                #whole
            } else {
                #(#parts)*
            }
        }
    }

    /// The statement that adds the size of the fields to `size`.
    pub(crate) fn size(&self, structure: &str, message: &MessageAttributes) -> TokenStream {
        let rungs = self.rungs();
        if !rungs.is_empty() {
            return rungs.iter().map(|rung| rung.size(structure, message)).collect();
        }
        let size = match &self.sizes {
            Some(sizes) => {
                let total: usize = sizes.iter().sum();
                quote!(#total)
            }
            None => self.fields[0].size(structure),
        };
        self.where_present(structure, message, &quote!(size += #size;))
    }

    /// The statement that writes the fields.
    pub(crate) fn put(&self, structure: &str, message: &MessageAttributes) -> TokenStream {
        let put = match &self.sizes {
            Some(sizes) => {
                let total: usize = sizes.iter().sum();
                let stores = self.places(sizes).map(|(field, from, to)| field.store(from, to));
                quote! {
                    let mut run = [0u8; #total];
                    #(#stores)*
                    out.put_slice(&run);
                }
            }
            None => {
                let put = self.fields[0].put(structure);
                quote!(#put;)
            }
        };
        let rungs: Vec<_> = self.rungs().iter().map(|rung| rung.put(structure, message)).collect();
        if rungs.is_empty() { self.where_present(structure, message, &put) } else { self.climb(message, &put, &rungs) }
    }

    /// The statement that reads the fields. What a version lacks is at its default already.
    pub(crate) fn fill(&self, structure: &str, message: &MessageAttributes) -> TokenStream {
        let fill = match &self.sizes {
            Some(sizes) => {
                let total: usize = sizes.iter().sum();
                let loads = self.places(sizes).map(|(field, from, to)| field.load(from, to));
                let names = self.fields.iter().map(|field| field.name());
                quote! {
                    let run = input
                        .peek_run::<#total>()
                        .map_err(|error| error.in_run(#structure, &[#((#names, #sizes)),*], version))?;
                    #(#loads)*
                    input.skip(#total)?;
                }
            }
            None => self.fields[0].fill(structure),
        };
        let rungs: Vec<_> = self.rungs().iter().map(|rung| rung.fill(structure, message)).collect();
        if !rungs.is_empty() {
            return self.climb(message, &fill, &rungs);
        }
        let first = self.fields[0];
        if first.is_partial(message) {
            let present = first.is_present(message);
            quote!(if #present { #fill })
        } else {
            fill
        }
    }

    /// Each field of a run with its place in it.
    fn places<'s>(&'s self, sizes: &'s [usize]) -> impl Iterator<Item = (&'b Field<'a>, usize, usize)> + 's {
        let mut end = 0;
        self.fields.iter().zip(sizes).map(move |(field, size)| {
            let start = end;
            end += size;
            (*field, start, end)
        })
    }

    /// `statement` where the version has the fields, and a check that nobody set them where it has not.
    fn where_present(&self, structure: &str, message: &MessageAttributes, statement: &TokenStream) -> TokenStream {
        let first = self.fields[0];
        if !first.is_partial(message) {
            return statement.clone();
        }
        let present = first.is_present(message);
        let refuse: TokenStream = self.fields.iter().filter_map(|field| field.refuse_if_set(structure)).collect();
        if refuse.is_empty() {
            quote!(if #present { #statement })
        } else {
            quote!(if #present { #statement } else { #refuse })
        }
    }
}
