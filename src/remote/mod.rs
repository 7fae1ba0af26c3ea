//! The admin ports of other gateways, as `drip top` and the live page of a gateway read them.
//!
//! | file | what it is |
//! |---|---|
//! | `client` | requests to an admin port, with the tokens of this process |
//! | `reader` | all that the picture of several gateways needs of one, within bounds |

pub(crate) mod client;
pub(crate) mod reader;
