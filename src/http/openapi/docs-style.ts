/** The style of the documentation page. Colors meet WCAG AA in both schemes. */
export const docsStyle = `
:root{color-scheme:light dark;--ink:#1c2430;--soft:#55606e;--line:#d8dde3;--page:#fff;--box:#f4f6f8;--link:#0b5cad}
@media (prefers-color-scheme:dark){:root{--ink:#e4e8ee;--soft:#a5afbc;--line:#37404b;--page:#14181d;--box:#1d2329;--link:#7db8f5}}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0;color:var(--ink);background:var(--page);font:16px/1.55 system-ui,sans-serif;display:grid;grid-template-columns:19rem minmax(0,1fr)}
a{color:var(--link)}
nav{border-right:1px solid var(--line);padding:1rem;height:100vh;overflow:auto;position:sticky;top:0;font-size:.875rem}
nav h2{font-size:.9rem;margin:1.2rem 0 .3rem}
nav ul{list-style:none;margin:0;padding:0}
nav li a{display:block;padding:.15rem 0;text-decoration:none;overflow-wrap:anywhere}
nav li a:hover,nav li a:focus{text-decoration:underline}
.brand{font-weight:700;margin:0}
main{padding:1.5rem 2rem 6rem;max-width:62rem}
h1{line-height:1.2}
article{border-top:1px solid var(--line);padding:1rem 0 1.5rem}
h3{overflow-wrap:anywhere}
h4{margin:1.2rem 0 .3rem}
code,pre{font:.875em/1.5 ui-monospace,monospace}
code{background:var(--box);padding:.1em .25em;border-radius:3px}
pre{background:var(--box);border:1px solid var(--line);border-radius:6px;padding:.8rem 1rem;overflow:auto}
pre code{background:none;padding:0}
.m{font:700 .75em/1 ui-monospace,monospace;color:var(--soft)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.9rem;margin:.8rem 0}
summary{cursor:pointer;font-weight:700;padding:.3rem 0}
details caption{display:none}
caption{text-align:left;font-weight:700;padding:.2rem 0}
th,td{border-bottom:1px solid var(--line);padding:.35rem .8rem .35rem 0;text-align:left;vertical-align:top}
thead th{color:var(--soft);font-weight:600}
tbody th{font-weight:400}
@media (max-width:50rem){body{display:block}nav{position:static;height:auto;border-right:0;border-bottom:1px solid var(--line)}main{padding:1rem}}
@media print{nav{display:none}body{display:block}}
`;
