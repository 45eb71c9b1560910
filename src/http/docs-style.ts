/** The look of the API reference. */

const FOUNDATION = `
:root {
  --ground: #fbfbf9; --panel: #f3f2ed; --line: #e2e0d8; --text: #24231f; --soft: #6b6860; --accent: #a8481d;
  --get: #1f6f4a; --post: #2458a6; --patch: #8a5a00; --delete: #b3261e; --code: #f0eee7; --block: #1f1e1b; --block-text: #ece9e1;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #171613; --panel: #1e1d19; --line: #35332d; --text: #e8e5dc; --soft: #a09c90; --accent: #ec9468;
    --get: #6cc79a; --post: #86b0f2; --patch: #e0b455; --delete: #f28b82; --code: #2a2823; --block: #0f0e0c; --block-text: #e2ded3;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1.5rem; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body {
  margin: 0; background: var(--ground); color: var(--text);
  font: 16px/1.6 ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; -webkit-text-size-adjust: 100%;
}
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .875em; }
a { color: var(--accent); text-underline-offset: .2em; text-decoration-thickness: 1px; }
a:focus-visible, summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
`

export const STYLE = `${FOUNDATION}
nav { background: var(--panel); border-bottom: 1px solid var(--line); padding: .75rem 1.25rem .5rem; }
nav .brand { font-weight: 650; font-size: 1.1rem; color: var(--text); text-decoration: none; letter-spacing: -.01em; }
nav .brand span { color: var(--soft); font-weight: 400; }
nav ul { list-style: none; margin: 0; padding: 0; font-size: .9rem; }
nav > ul { display: flex; gap: 1.1rem; overflow-x: auto; padding: .5rem 0 .25rem; white-space: nowrap; scrollbar-width: none; }
nav li ul { display: none; }
nav li li { margin-top: .3rem; }
nav ul a { color: var(--text); text-decoration: none; display: block; }
nav ul a:hover { color: var(--accent); }
nav li li a { display: flex; align-items: baseline; line-height: 1.4; }
nav b { flex: none; width: 3.4rem; font-size: .62rem; letter-spacing: .04em; }

main { padding: 2rem 1.25rem 4rem; max-width: 54rem; margin: 0 auto; }
h1 { font-size: 2.1rem; line-height: 1.2; letter-spacing: -.02em; margin: 0 0 1rem; }
h2 { font-size: 1.5rem; letter-spacing: -.015em; margin: 3.5rem 0 1rem; padding-top: 1.5rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.15rem; margin: 0 0 .5rem; letter-spacing: -.01em; }
h4 { font-size: .8rem; text-transform: uppercase; letter-spacing: .06em; color: var(--soft); margin: 1.75rem 0 .4rem; font-weight: 600; }
p, ul { margin: 0 0 1rem; }
main ul { padding-left: 1.2rem; }
main li { margin-bottom: .4rem; }
section { margin: 2.5rem 0; }
section + section { padding-top: 2.5rem; border-top: 1px solid var(--line); }
p code, li code, dd code, td code, .fields span code { background: var(--code); border-radius: 4px; padding: .1em .35em; overflow-wrap: anywhere; }
pre { background: var(--block); color: var(--block-text); border-radius: 8px; padding: 1rem 1.15rem; overflow-x: auto; margin: 1.25rem 0; line-height: 1.55; }
pre i { font-style: normal; opacity: .6; }

.route { display: flex; align-items: center; gap: .7rem; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: .5rem .8rem; }
.route code { background: none; padding: 0; font-size: .92rem; }
.route b { font-size: .75rem; letter-spacing: .04em; }
.GET { color: var(--get); } .POST { color: var(--post); } .PATCH { color: var(--patch); } .DELETE { color: var(--delete); }

.fields { margin: 0 0 1rem; border-top: 1px solid var(--line); }
.fields > div { display: grid; gap: .1rem 1.5rem; padding: .6rem 0; border-bottom: 1px solid var(--line); }
.fields dt { font-weight: 600; overflow-wrap: anywhere; }
.fields dt em { font-style: normal; font-weight: 500; font-size: .75rem; color: var(--accent); margin-left: .5rem; }
.fields dt span { display: block; font-weight: 400; font-size: .82rem; color: var(--soft); line-height: 1.5; }
.fields dd { margin: 0; font-size: .94rem; }
.errors { font-size: .94rem; } .errors summary { cursor: pointer; color: var(--soft); }
.errors .fields { margin-top: .6rem; }
table { border-collapse: collapse; width: 100%; font-size: .94rem; }
th, td { text-align: left; font-weight: 400; padding: .55rem 1rem .55rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); }
footer { margin-top: 4rem; color: var(--soft); font-size: .85rem; }

@media (min-width: 40rem) {
  .fields > div { grid-template-columns: minmax(11rem, 17rem) 1fr; }
  .errors .fields > div { grid-template-columns: 3.5rem 1fr; }
}
@media (min-width: 64rem) {
  body { display: grid; grid-template-columns: 18.5rem minmax(0, 1fr); }
  nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; border: 0; border-right: 1px solid var(--line); padding: 1.75rem 1.5rem; }
  nav > ul { display: block; overflow: visible; white-space: normal; }
  nav > ul > li { margin-top: .9rem; }
  nav > ul > li > a { font-weight: 600; }
  nav li ul { display: block; margin-top: .4rem; }
  main { padding: 3rem 3.5rem 6rem; margin: 0; }
}
@media print { nav { display: none; } body { display: block; } }
`
