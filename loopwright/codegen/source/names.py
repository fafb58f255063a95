"""Names: identifiers of a C-like source: legal, unique, and as close to the program's own names as that allows."""

from __future__ import annotations

import re
from typing import Final

OWN_PREFIX: Final = "lw_"  # of the functions that the source brings along

_KEYWORDS: Final = (
    "auto break case char const continue default do double else enum extern float for goto if inline int long "
    "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
    # of C++, whose compilers read the header, and macros of the headers
    "alignas alignof and asm bitand bitor bool catch class compl concept constexpr decltype delete explicit export "
    "false friend mutable namespace new noexcept not nullptr operator or private protected public requires template "
    "this throw true try typeid typename using virtual wchar_t xor I NULL NAN INFINITY HUGE_VAL EOF errno assert "
    "complex imaginary unix linux size_t "
    # of C11, C23 and GNU C, and other names that C++ and common headers take
    "typeof typeof_unqual static_assert thread_local constinit consteval co_await co_return co_yield char8_t char16_t "
    "char32_t const_cast dynamic_cast reinterpret_cast static_cast and_eq or_eq xor_eq not_eq ptrdiff_t stdin stdout "
    "stderr environ offsetof va_list va_start va_arg va_end va_copy setjmp longjmp"
).split()
# Functions of <math.h>, <stdio.h>, <stdlib.h> and <string.h>: a program may call them, so nothing else takes their
# names; the last line is of functions that C libraries have beside the standard.
_MATH: Final = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma "
    "fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan "
    "nearbyint nextafter nexttoward pow remainder remquo rint round scalbln scalbn sin sinh sqrt tan tanh tgamma trunc"
).split()
_OTHERS: Final = (
    "isnan isinf isfinite isnormal signbit fpclassify printf fprintf sprintf snprintf puts putchar fputs fflush perror "
    "abort abs atexit atof atoi atol atoll bsearch calloc div exit free getenv labs ldiv llabs lldiv malloc mblen "
    "mbstowcs mbtowc qsort rand realloc srand strtod strtof strtol strtold strtoll strtoul strtoull system wcstombs "
    "wctomb memchr memcmp memcpy memmove memset strcat strchr strcmp strcoll strcpy strcspn strerror strlen strncat "
    "strncmp strncpy strpbrk strrchr strspn strstr strtok strxfrm "
    "j0 j1 jn y0 y1 yn gamma exp10 index rindex"
).split()
# What the libraries that we link call, for the thread pool and workspace inside them too: a function of a program with
# one of these names would be called instead.
_OF_RUNTIME: Final = re.compile(
    r"(pthread|sched|clock|sem|atomic)_\w+|TVMFFI\w*|dl(open|sym|close|error|addr|info)|sig\w+set|f(open|close|gets|read)|"
    r"sscanf|getrusage|madvise|mmap|munmap|mprotect|posix_memalign|syscall|sysconf|loopwright_(last|set)_error"
)
LIBRARY: Final = frozenset([*_MATH, *[f"{name}{ending}" for name in _MATH for ending in "fl"], *_OTHERS])
_RESERVED: Final = frozenset([*_KEYWORDS, *LIBRARY, "main"])
_OF_STDINT: Final = re.compile(r"U?INT.*|u?int\w*_t|[A-Z]+_MAX")
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)


class Names:
    """The identifiers of one scope; those of `outer` are taken too."""

    def __init__(self, outer: Names | None = None) -> None:
        self._outer = outer
        self._taken: dict[str, int] = {}
        self._counters: dict[str, list[str]] = {}  # by what was wanted: the counters of loops that have ended

    def fresh(self, wanted: str) -> str:
        """An identifier like `wanted` that nothing else has."""
        stem = legal(wanted)
        name = stem
        while not self._is_free(name):
            self._taken[stem] = self._taken.get(stem, 0) + 1
            name = f"{stem}_{self._taken[stem]}"
        self._taken.setdefault(name, 0)
        return name

    def counter(self, wanted: str) -> str:
        """An identifier for the counter of a loop; one that was given back, if there is one."""
        ended = self._counters.get(wanted)
        return ended.pop() if ended else self.fresh(wanted)

    def give_back(self, wanted: str, name: str) -> None:
        """The loop that `counter` named has ended; another one may have the name."""
        self._counters.setdefault(wanted, []).append(name)

    def reserve(self, name: str) -> None:
        """Give `name` to nothing."""
        self._taken.setdefault(name, 0)

    def _is_free(self, name: str) -> bool:
        if name in self._taken or name in _RESERVED:
            return False
        return self._outer is None or self._outer._is_free(name)


def legal(wanted: str) -> str:
    """`wanted` with only letters, digits and underscores, and out of the way of names that C or we reserve."""
    text = re.sub(r"\W", "_", wanted, flags=re.ASCII)
    if not _PLAIN.fullmatch(text) or text.startswith(OWN_PREFIX) or _OF_STDINT.fullmatch(text):
        text = f"v_{text}".replace("__", "_")
    return text


def symbol(name: str) -> str:
    """What a function called `name` is called in C; `main` and other reserved names get a prefix."""
    text = re.sub(r"\W", "_", name, flags=re.ASCII)
    is_free = _PLAIN.fullmatch(text) and text not in _RESERVED and not text.startswith(OWN_PREFIX)
    is_free = is_free and not _OF_RUNTIME.fullmatch(text)
    return text if is_free else f"loopwright_{text}"
