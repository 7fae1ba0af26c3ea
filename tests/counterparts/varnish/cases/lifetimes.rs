//! How long an answer may be reused.

use super::{Case, may, no};

pub(super) fn lifetimes() -> Vec<Case> {
    vec![
        may("no lifetime", ""),
        may("no lifetime, and a validator", "ETag: \"a\""),
        may("max-age", "Cache-Control: max-age=3600"),
        no("max-age is over", "Cache-Control: max-age=1"),
        no("max-age=0", "Cache-Control: max-age=0"),
        may("max-age of 31 bits", "Cache-Control: max-age=2147483647"),
        may("max-age of 32 bits", "Cache-Control: max-age=2147483648"),
        may("max-age of 37 bits", "Cache-Control: max-age=99999999999"),
        may(
            "max-age beats a past Expires",
            "Cache-Control: max-age=3600\nExpires: {-7200}\nDate: {0}",
        ),
        may(
            "max-age beats an Expires that is none",
            "Cache-Control: max-age=3600\nExpires: 0",
        ),
        no(
            "max-age=0 beats Expires",
            "Cache-Control: max-age=0\nExpires: {3600}\nDate: {0}",
        ),
        may(
            "max-age beside an extension",
            "Cache-Control: foobar, max-age=3600",
        ),
        may("s-maxage", "Cache-Control: s-maxage=3600"),
        no("s-maxage is over", "Cache-Control: s-maxage=1"),
        no("short s-maxage", "Cache-Control: max-age=3600, s-maxage=1"),
        no(
            "short s-maxage comes first",
            "Cache-Control: s-maxage=1, max-age=3600",
        ),
        no(
            "short s-maxage on a line of its own",
            "Cache-Control: max-age=3600\nCache-Control: s-maxage=1",
        ),
        may("long s-maxage", "Cache-Control: s-maxage=3600, max-age=1"),
        may(
            "long s-maxage beats a past Expires",
            "Cache-Control: s-maxage=3600, max-age=0\nExpires: {-60}",
        ),
        may(
            "stale-while-revalidate within",
            "Cache-Control: max-age=1, stale-while-revalidate=3600",
        ),
    ]
}

pub(super) fn spellings() -> Vec<Case> {
    vec![
        may("MaX-AgE", "Cache-Control: MaX-AgE=3600"),
        no("negative max-age", "Cache-Control: max-age=-3600"),
        may("quoted max-age", "Cache-Control: max-age=\"3600\""),
        no("max-age in single quotes", "Cache-Control: max-age='3600'"),
        no(
            "max-age in a quotation before",
            "Cache-Control: extension=\"max-age=3600\", max-age=1",
        ),
        no(
            "max-age in a quotation after",
            "Cache-Control: max-age=1, extension=\"max-age=3600\"",
        ),
        may("max-age with zeros", "Cache-Control: max-age=003600"),
        may(
            "two max-age, the first is short",
            "Cache-Control: max-age=1, max-age=3600",
        ),
        may(
            "two max-age, the second is short",
            "Cache-Control: max-age=3600, max-age=1",
        ),
        may(
            "two lines of max-age, the first is short",
            "Cache-Control: max-age=1\nCache-Control: max-age=3600",
        ),
        may(
            "two lines of max-age, the second is short",
            "Cache-Control: max-age=3600\nCache-Control: max-age=1",
        ),
        may(
            "max-age with a blank before =",
            "Cache-Control: max-age =3600",
        ),
        may(
            "max-age with a blank after =",
            "Cache-Control: max-age= 3600",
        ),
        may("max-age with a fraction", "Cache-Control: max-age=3600.5"),
        may(
            "max-age with a letter before",
            "Cache-Control: max-age=a3600",
        ),
        may(
            "max-age with a letter behind",
            "Cache-Control: max-age=3600a",
        ),
        may(
            "Pragma: no-cache in the answer",
            "Cache-Control: max-age=3600\nPragma: no-cache",
        ),
        may(
            "another field for caches",
            "Cache-Control: max-age=3600\nCDN-Cache-Control: max-age=1",
        ),
    ]
}

pub(super) fn directives() -> Vec<Case> {
    vec![
        no("private", "Cache-Control: private"),
        no(
            "private, and a lifetime",
            "Cache-Control: private, max-age=3600",
        ),
        no("PrIvAtE", "Cache-Control: PrIvAtE, max-age=3600"),
        no(
            "private on a line of its own",
            "Cache-Control: max-age=3600\nCache-Control: private",
        ),
        no(
            "public and private",
            "Cache-Control: public, private, max-age=3600",
        ),
        may(
            "private for a field",
            "Cache-Control: private=\"x-a\", max-age=3600",
        ),
        no("no-store", "Cache-Control: no-store"),
        no("nO-StOrE", "Cache-Control: nO-StOrE"),
        no(
            "no-store, and a lifetime",
            "Cache-Control: max-age=3600, no-store\nExpires: {3600}",
        ),
        no("no-cache", "Cache-Control: no-cache"),
        no(
            "No-CaChE",
            "Cache-Control: No-CaChE, max-age=3600\nExpires: {3600}",
        ),
        may(
            "no-cache for a field",
            "Cache-Control: no-cache=\"x-a\", max-age=3600",
        ),
        may(
            "must-revalidate",
            "Cache-Control: max-age=3600, must-revalidate",
        ),
        no(
            "must-revalidate, and over",
            "Cache-Control: max-age=1, must-revalidate",
        ),
        no(
            "proxy-revalidate, and over",
            "Cache-Control: max-age=1, proxy-revalidate",
        ),
        may("immutable", "Cache-Control: max-age=3600, immutable"),
        no("immutable, and over", "Cache-Control: max-age=1, immutable"),
        may(
            "must-understand with no-store",
            "Cache-Control: max-age=3600, no-store, must-understand",
        ),
        may("Set-Cookie", "Cache-Control: max-age=3600\nSet-Cookie: a=b"),
        may(
            "an attachment",
            "Content-Disposition: attachment; filename=a",
        ),
    ]
}

pub(super) fn expires() -> Vec<Case> {
    vec![
        may("Expires", "Expires: {3600}\nDate: {0}"),
        no("Expires is over", "Expires: {1}\nDate: {0}"),
        no("Expires is past", "Expires: {-3600}\nDate: {0}"),
        no("Expires is now", "Expires: {0}\nDate: {0}"),
        no(
            "Expires before a Date that is fast",
            "Expires: {300}\nDate: {400}",
        ),
        no("Expires: 0", "Expires: 0\nDate: {0}"),
        may(
            "Expires with a Date that is none",
            "Date: foo\nExpires: {3600}",
        ),
        may(
            "Expires beyond 31 bits",
            "Expires: Tue, 19 Jan 2038 14:14:08 GMT\nDate: {0}",
        ),
        may(
            "Expires far away",
            "Expires: Sun, 21 Nov 2286 04:46:39 GMT\nDate: {0}",
        ),
        may(
            "Expires as RFC 850 has it",
            "Expires: Thursday, 18-Aug-50 02:01:18 GMT\nDate: {0}",
        ),
        may(
            "Expires as asctime has it",
            "Expires: Thu Aug  8 02:01:18 2050\nDate: {0}",
        ),
        may(
            "Expires with an odd weekday",
            "Expires: THU, 18 Aug 2050 02:01:18 GMT\nDate: {0}",
        ),
        may(
            "Expires with an odd month",
            "Expires: Thu, 18 AUG 2050 02:01:18 GMT\nDate: {0}",
        ),
        may(
            "Expires with an odd zone",
            "Expires: Thu, 18 Aug 2050 02:01:18 gMT\nDate: {0}",
        ),
        no(
            "Expires in UTC",
            "Expires: Thu, 18 Aug 2050 02:01:18 UTC\nDate: {0}",
        ),
        no(
            "Expires in another zone",
            "Expires: Thu, 18 Aug 2050 02:01:18 AEST\nDate: {0}",
        ),
        no(
            "Expires in a zone of numbers",
            "Expires: Thu, 18 Aug 2050 02:01:18 +1000\nDate: {0}",
        ),
        no(
            "Expires with two digits of the year",
            "Expires: Thu, 18 Aug 50 02:01:18 GMT\nDate: {0}",
        ),
        no(
            "Expires without its comma",
            "Expires: Thu 18 Aug 2050 02:01:18 GMT\nDate: {0}",
        ),
        no(
            "Expires without a weekday",
            "Expires: 18 Aug 2050 02:01:18 GMT\nDate: {0}",
        ),
        no(
            "Expires with blanks",
            "Expires: Thu, 18  Aug  2050 02:01:18 GMT\nDate: {0}",
        ),
        no(
            "Expires with hyphens",
            "Expires: Thu, 18-Aug-2050 02:01:18 GMT\nDate: {0}",
        ),
        no(
            "Expires with periods",
            "Expires: Thu, 18 Aug 2050 02.01.18 GMT\nDate: {0}",
        ),
        no(
            "Expires with one digit of the hour",
            "Expires: Thu, 18 Aug 2050 2:01:18 GMT\nDate: {0}",
        ),
        no(
            "Expires without seconds",
            "Expires: Thu, 18 Aug 2050 02:01 GMT\nDate: {0}",
        ),
        no(
            "Expires with a comment",
            "Expires: Thu, 18 Aug 2050 02:01:18 GMT (x)\nDate: {0}",
        ),
        no("two Expires", "Expires: {3600}\nExpires: {7200}\nDate: {0}"),
        no(
            "Age above Expires, slow Date",
            "Date: {-1000}\nExpires: {1000}\nAge: 2500",
        ),
        no(
            "Age above Expires, fast Date",
            "Date: {1000}\nExpires: {2000}\nAge: 1500",
        ),
    ]
}

pub(super) fn ages() -> Vec<Case> {
    vec![
        may("Age below max-age", "Cache-Control: max-age=3600\nAge: 100"),
        no(
            "Age above max-age",
            "Cache-Control: max-age=3600\nAge: 7200",
        ),
        no(
            "a Date above max-age ago",
            "Cache-Control: max-age=3600\nDate: {-7200}",
        ),
        may("Age is no number", "Cache-Control: max-age=3600\nAge: abc"),
        may("Age is negative", "Cache-Control: max-age=3600\nAge: -7200"),
        may(
            "Age is a fraction",
            "Cache-Control: max-age=3600\nAge: 7200.0",
        ),
        no(
            "Age of 31 bits",
            "Cache-Control: max-age=3600\nAge: 2147483647",
        ),
        no(
            "Age of 32 bits",
            "Cache-Control: max-age=3600\nAge: 2147483648",
        ),
        no(
            "Age of 37 bits",
            "Cache-Control: max-age=3600\nAge: 99999999999",
        ),
        no("Age: old, 0", "Cache-Control: max-age=3600\nAge: 7200, 0"),
        may("Age: 0, old", "Cache-Control: max-age=3600\nAge: 0, 7200"),
        no(
            "Age: old, then Age: 0",
            "Cache-Control: max-age=3600\nAge: 7200\nAge: 0",
        ),
        may(
            "Age: 0, then Age: old",
            "Cache-Control: max-age=3600\nAge: 0\nAge: 7200",
        ),
        may("Age: 0, 0", "Cache-Control: max-age=3600\nAge: 0, 0"),
        may(
            "Age with a parameter",
            "Cache-Control: max-age=3600\nAge: 7200;foo=bar",
        ),
    ]
}
