//! What the derive refuses, and how it says so.

use proc_macro2::TokenStream;
use quote::quote;

/// The first complaint about a struct with these attributes and fields.
fn complaint(message: TokenStream, fields: TokenStream) -> String {
    let input = syn::parse2(quote!(#message struct Foo { #fields })).expect("a struct");
    crate::expand::expand(&input).expect_err("a refusal").to_string()
}

fn refused(fields: TokenStream) -> String {
    complaint(quote!(#[message(key = 3, versions = 2..=9, flexible = 5..)]), fields)
}

#[test]
fn a_tag_cannot_be_used_twice() {
    let complaint = refused(quote! {
        #[field(versions = 5.., tag = 1)] a: i32,
        #[field(versions = 6.., tag = 0)] b: i32,
        #[field(versions = 7.., tag = 1)] c: i32,
    });

    assert_eq!(complaint, "tag 1 is taken by `a`");
}

#[test]
fn a_tag_needs_flexible_versions() {
    let too_early = refused(quote!(#[field(versions = 4.., tag = 0)] a: i32));
    let all = refused(quote!(#[field(tag = 0)] a: i32));
    let never = complaint(quote!(#[message(versions = 0..=3)]), quote!(#[field(tag = 0)] a: i32));

    assert_eq!(too_early, "version 4 of this field is before the first flexible one, 5");
    assert_eq!(all, "version 2 of this field is before the first flexible one, 5");
    assert_eq!(never, "a message that is never flexible has no tags");
}

#[test]
fn versions_stay_inside_the_message() {
    let early = refused(quote!(#[field(versions = 1..)] a: i32));
    let late = refused(quote!(#[field(versions = ..=10)] a: i32));
    let outside = refused(quote!(#[field(versions = 12..)] a: i32));
    let backwards = refused(quote!(#[field(versions = 7..=6)] a: i32));
    let null_early = refused(quote!(#[field(versions = 6.., nullable = 5..)] a: Option<Str>));

    let hint = "leave an end open to mean its end";
    assert_eq!(early, format!("versions 1..=9 are outside the message's versions, 2..=9; {hint}"));
    assert_eq!(late, format!("versions 2..=10 are outside the message's versions, 2..=9; {hint}"));
    assert_eq!(outside, "no version is in 12..=9");
    assert_eq!(backwards, "no version is in 7..=6");
    assert_eq!(null_early, format!("versions 5..=9 are outside the field's versions, 6..=9; {hint}"));
}

#[test]
fn versions_are_ranges_of_numbers() {
    let half_open = refused(quote!(#[field(versions = 3..5)] a: i32));
    let no_number = refused(quote!(#[field(versions = FIRST..)] a: i32));

    assert_eq!(half_open, "the last version is included: write `..=`");
    assert_eq!(no_number, "a version is a number");
}

#[test]
fn null_needs_an_option_in_every_version_where_it_is_the_default() {
    let no_option = refused(quote!(#[field(nullable = 3..)] a: Str));
    let default = refused(quote!(#[field(default = null)] a: Str));
    let narrow = refused(quote!(#[field(nullable = 3.., default = null)] a: Option<Str>));

    assert_eq!(no_option, "a nullable field is an `Option`");
    assert_eq!(default, "only an `Option` can be null");
    assert_eq!(narrow, "null is the default, and some of the field's versions have no null");
}

#[test]
fn a_default_is_of_the_fields_type() {
    let wrong = [
        quote!(#[field(default = "x")] a: i32),
        quote!(#[field(default = 1)] a: bool),
        quote!(#[field(default = true)] a: i64),
        quote!(#[field(default = 1)] a: Str),
        quote!(#[field(default = 0)] a: Vec<i32>),
        quote!(#[field(default = 0)] a: Other),
    ];

    for field in wrong {
        assert_eq!(refused(field), "this is no default of the field's type");
    }
}

#[test]
fn records_are_bytes() {
    assert_eq!(refused(quote!(#[field(records)] a: Option<Str>)), "`records` are `Bytes`");
}

#[test]
fn a_tagged_structure_is_nullable_always_or_never() {
    let complaint = refused(quote!(#[field(versions = 5.., tag = 0, nullable = 6..)] a: Option<Other>));

    assert_eq!(complaint, "a structure that is a tagged field can be null always or never");
}

#[test]
fn a_message_names_its_versions_and_a_request_its_key() {
    let none = complaint(quote!(), quote!());
    let open = complaint(quote!(#[message(versions = 2..)]), quote!());
    let flexible = complaint(quote!(#[message(versions = 0..=2, flexible = 1..=2)]), quote!());
    let keyless = complaint(quote!(#[message(versions = 0..=2, response = Bar)]), quote!());
    let twice = complaint(quote!(#[message(versions = 0..=2, versions = 0..=3)]), quote!());

    assert_eq!(none, "the versions are missing: #[message(versions = 0..=3)]");
    assert_eq!(open, "a message's versions have two ends: `versions = 0..=3`");
    assert_eq!(flexible, "flexible versions have no end: `flexible = 2..`");
    assert_eq!(keyless, "a request needs the API's number: `key = 1`");
    assert_eq!(twice, "this is said twice");
}

#[test]
fn the_unstable_version_stands_beside_the_others() {
    let unstable = |version: TokenStream| complaint(quote!(#[message(versions = 2..=4, #version)]), quote!());

    let hint = "the unstable version is one directly after or before 2..=4: `unstable = 5`";
    for wrong in [
        quote!(unstable = 0),
        quote!(unstable = 2),
        quote!(unstable = 4),
        quote!(unstable = 6),
        quote!(unstable = 5..),
        quote!(unstable = ..=1),
        quote!(unstable = 5..=6),
    ] {
        assert_eq!(unstable(wrong), hint);
    }
    assert_eq!(unstable(quote!(unstable = 5, unstable = 1)), "this is said twice");
}

#[test]
fn fields_may_have_the_unstable_version() {
    let after = complaint(
        quote!(#[message(versions = 2..=4, unstable = 5)]),
        quote!(#[field(versions = 5..)] a: i32, #[field(versions = 1..)] b: i32),
    );
    let before = complaint(
        quote!(#[message(versions = 2..=4, unstable = 1)]),
        quote!(#[field(versions = ..=1)] a: i32, #[field(versions = ..=5)] b: i32),
    );

    let hint = "leave an end open to mean its end";
    assert_eq!(after, format!("versions 1..=5 are outside the message's versions, 2..=5; {hint}"));
    assert_eq!(before, format!("versions 1..=5 are outside the message's versions, 1..=4; {hint}"));
}

#[test]
fn unknown_attributes_are_refused() {
    assert_eq!(
        refused(quote!(#[field(nulable = 3..)] a: Option<Str>)),
        "a field has `versions`, `nullable`, `tag`, `ignorable`, `default` and `records`"
    );
    assert_eq!(
        complaint(quote!(#[message(version = 3)]), quote!()),
        "a message has `key`, `versions`, `unstable`, `flexible`, `response` and `name`"
    );
}

#[test]
fn only_structs_with_named_fields_are_messages() {
    let refused = |input: TokenStream| {
        let input = syn::parse2(quote!(#[message(versions = 0..=1)] #input)).expect("an item");
        crate::expand::expand(&input).expect_err("a refusal").to_string()
    };

    assert_eq!(
        refused(quote!(
            enum Foo {}
        )),
        "a message is a struct"
    );
    assert_eq!(
        refused(quote!(
            struct Foo(i32);
        )),
        "the fields of a message have names"
    );
    assert_eq!(
        refused(quote!(
            struct Foo<T> {
                a: T,
            }
        )),
        "a message has no parameters"
    );
}
