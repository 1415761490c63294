//! The APIs that we speak: one line in the table below, one file beside this one.

pub mod api_versions;
mod key;

use std::any::Any;

pub use key::ApiKey;

use crate::wire::{DecodeError, EncodeError, Reader, Writer};
use crate::{Message, Request, Versions};

macro_rules! apis {
    ($($key:ident: $module:ident::{$request:ident, $response:ident}, $min:ident ..= $max:ident;)*) => {
        $(use $module::{$request, $response};)*

        /// What the root of the crate re-exports.
        #[doc(hidden)]
        pub mod requests_and_responses {
            $(pub use super::$module::{$request, $response};)*
        }

        /// A request of any API that we speak.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)] // Their names are Kafka's, and say it.
        pub enum AnyRequest {
            $($key($request),)*
        }

        /// A response of any API that we speak.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)] // Their names are Kafka's, and say it.
        pub enum AnyResponse {
            $($key($response),)*
        }

        impl ApiKey {
            /// The APIs that we speak, in the order of their numbers.
            pub const SPOKEN: &'static [Self] = &[$(Self::$key),*];

            /// The versions that we speak, if we speak the API.
            pub const fn versions(self) -> Option<Versions> {
                match self {
                    $(Self::$key => Some(<$request as Request>::VERSIONS),)*
                    _ => None,
                }
            }
        }

        impl AnyRequest {
            /// The API.
            pub const fn key(&self) -> ApiKey {
                match self {
                    $(Self::$key(_) => ApiKey::$key,)*
                }
            }

            /// Reads the body of a request.
            ///
            /// # Errors
            /// We do not speak the API or the version, or the bytes are no such request.
            pub fn decode(key: ApiKey, version: i16, input: &mut Reader) -> Result<Self, DecodeError> {
                match key {
                    $(ApiKey::$key => $request::decode(input, version).map(Self::$key),)*
                    _ => Err(DecodeError::unspoken(key.code())),
                }
            }

            /// Writes the body of the request.
            ///
            /// # Errors
            /// Those of [`Message::encode`].
            pub fn encode(&self, out: &mut Writer, version: i16) -> Result<(), EncodeError> {
                match self {
                    $(Self::$key(request) => request.encode(out, version),)*
                }
            }

            fn as_any(&self) -> &dyn Any {
                match self {
                    $(Self::$key(request) => request,)*
                }
            }

            fn as_any_mut(&mut self) -> &mut dyn Any {
                match self {
                    $(Self::$key(request) => request,)*
                }
            }
        }

        impl AnyResponse {
            /// The API.
            pub const fn key(&self) -> ApiKey {
                match self {
                    $(Self::$key(_) => ApiKey::$key,)*
                }
            }

            /// Reads the body of a response. That to ApiVersions may be an error in version 0 instead.
            ///
            /// # Errors
            /// We do not speak the API or the version, or the bytes are no such response.
            pub fn decode(key: ApiKey, version: i16, input: &mut Reader) -> Result<Self, DecodeError> {
                if key == ApiKey::ApiVersions {
                    return ApiVersionsResponse::decode_answer(input, version).map(Self::ApiVersions);
                }
                match key {
                    $(ApiKey::$key => $response::decode(input, version).map(Self::$key),)*
                    _ => Err(DecodeError::unspoken(key.code())),
                }
            }

            /// Writes the body of the response.
            ///
            /// # Errors
            /// Those of [`Message::encode`].
            pub fn encode(&self, out: &mut Writer, version: i16) -> Result<(), EncodeError> {
                match self {
                    $(Self::$key(response) => response.encode(out, version),)*
                }
            }

            fn as_any(&self) -> &dyn Any {
                match self {
                    $(Self::$key(response) => response,)*
                }
            }

            fn as_any_mut(&mut self) -> &mut dyn Any {
                match self {
                    $(Self::$key(response) => response,)*
                }
            }
        }

        $(
            impl From<$request> for AnyRequest {
                fn from(request: $request) -> Self {
                    Self::$key(request)
                }
            }

            impl From<$response> for AnyResponse {
                fn from(response: $response) -> Self {
                    Self::$key(response)
                }
            }
        )*

        /// The lowest and the highest version of each API that we speak.
        #[allow(missing_docs)] // Their names say it.
        pub mod versions {
            use super::ApiKey;

            $(
                pub const $min: i16 = ApiKey::$key.versions().expect("the table's own key").min;
                pub const $max: i16 = ApiKey::$key.versions().expect("the table's own key").max;
            )*
        }
    };
}

apis! {
    ApiVersions: api_versions::{ApiVersionsRequest, ApiVersionsResponse}, API_VERSIONS_MIN..=API_VERSIONS_MAX;
}

impl AnyRequest {
    /// The request, if it is an `R`.
    pub fn downcast_ref<R: Request + 'static>(&self) -> Option<&R> {
        self.as_any().downcast_ref()
    }

    /// The request, if it is an `R`.
    pub fn downcast_mut<R: Request + 'static>(&mut self) -> Option<&mut R> {
        self.as_any_mut().downcast_mut()
    }
}

impl AnyResponse {
    /// The response, if it is an `M`.
    pub fn downcast_ref<M: Message + 'static>(&self) -> Option<&M> {
        self.as_any().downcast_ref()
    }

    /// The response, if it is an `M`.
    pub fn downcast_mut<M: Message + 'static>(&mut self) -> Option<&mut M> {
        self.as_any_mut().downcast_mut()
    }
}
