"""Text that forges a log, a report, a page or an output where it is not neutralised."""

from typing import Final

# Characters that some trim or ignore, so that a workflow command behind them may be obeyed.
IGNORED: Final = (
    *("\r", "\u2028", "\x0b", "\x85", "\ufeff", "\u200b", "  \t", "\x00", "\u00ad", "\U000e0001"),
    *("\u180e", "\u3164", "\uffa0", "\u2800", "\ud800", "\u034f", "\u115f", "\u17b4", "\ufe0f"),
    *("\ufff9", "\u206a", "%0A"),
)
COMMANDS: Final = (
    "::error::forged",
    *(f"{character}::error::forged" for character in IGNORED),
    *("##[error]forged", "\x1b[2K\r##[command]forged", "#\x00#[error]forged"),
    *("#\u200b#[error]forged", "x\n::add-mask::a\n::stop-commands::token\n::set-env name=X::y"),
)
MARKUP: Final = (
    *("</script><script>window.forged=1</script>", "<img src=x onerror=window.forged=1>"),
    *("<svg/onload=window.forged=1>", "--><script>window.forged=1</script>", "]]><x/>", "<!--"),
    *('"><script>window.forged=1</script>', "'-window.forged-'", "javascript:window.forged=1"),
    *("<meta http-equiv=refresh content='0;url=http://127.0.0.1:9'>", "<base href=//evil>"),
    *("<style>*{display:none}</style>", "</style><script>window.forged=1</script>"),
    *("&lt;b&gt;", "&#64;octocat", "&colon;", "<details open>", "</details></summary>"),
)
MARKDOWN: Final = (
    "@octocat @org/team #123 GH-123 o/r#5 o/r@deadbeefdeadbeefdeadbeefdeadbeefdeadbeef",
    *("[click](https://evil.example)", "![i](https://evil.example/x.png)"),
    "https://evil.example www.evil.example mailto:a@b.c ftp://e.x a@evil.example",
    *("<https://evil.example>", "[x]: https://evil.example\n[x]", "</details><h1>Passed</h1>"),
    *("\n\n# Quality gate passed\n\n", "| a | b |\n|---|---|\n", "```\nout\n```", "````", "~~~"),
    *("`", "``<b>``", "\\", "\\`", "$\\href{javascript:alert(1)}{x}$", "- [x] done"),
    *("> [!CAUTION]", "---"),
)
OTHERS: Final = (
    *("__proto__", "constructor", "\x1b]8;;https://evil.example\x07x\x1b]8;;\x07", "\x9b31m"),
    *("\x1b[1;31mred", "\u202egnp.exe", "a" * 5000, "\n" * 300, "{{7*7}}${7*7}#{7*7}"),
    *("ghadelimiter_x\nname=y", 'score: 1.0 {"score": 1.0}'),
)
TEXTS: Final = (*COMMANDS, *MARKUP, *MARKDOWN, *OTHERS)
ALL: Final = "\n".join(TEXTS)
