//! Heap profiles in DHAT's JSON, version 2, as valgrind and the dhat crate write them:
//! <https://valgrind.org/docs/manual/dh-manual.html>.
//!
//! ```text
//! {"dhatFileVersion":2,"mode":"heap","verb":"Allocated","bklt":true,"bkacc":true
//! ,"tu":"instrs","Mtu":"Minstr","cmd":"./a","pid":20916,"te":890784,"tg":519747
//! ,"pps":[{"tb":272,"tbk":1,"tl":734223,"mb":272,"mbk":1,"gb":272,"gbk":1,"eb":0,"ebk":0
//!   ,"rb":256,"wb":40,"fs":[1,2]}]
//! ,"ftbl":["[root]","0x48C67A8: malloc (a.c:1)","0x109162: main (a.c:9)"]}
//! ```
//!
//! What was not recorded (`bklt` or `bkacc` false) is `None`, never 0.

mod model;
mod parse;
#[cfg(test)]
mod tests;

pub use model::{Amount, Mode, Point, Profile, Totals};
pub use parse::Decoder;
