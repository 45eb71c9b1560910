/** The look of the console: the API reference's type and colours, and a calm place for what needs attention. */
import { FOUNDATION } from './docs-style.ts'

export const CONSOLE_STYLE = `${FOUNDATION}
:root { --amber: #7d5200; --amber-ground: #fbf4e2; --amber-line: #e9d8ad; --green: var(--get); --red: var(--delete); --card: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --amber: #e6bd66; --amber-ground: #262013; --amber-line: #4a3d1f; --card: #1b1a16; }
}
[hidden] { display: none !important; }
button:focus-visible, input:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
h1, h2, h3, p, ul, dl, dd { margin: 0; }
ul { list-style: none; padding: 0; }
code { overflow-wrap: anywhere; }

.bar { display: flex; align-items: center; justify-content: space-between; gap: .25rem 1rem; flex-wrap: wrap; padding: .6rem 1.25rem; border-bottom: 1px solid var(--line); background: var(--panel); }
.brand { font-weight: 650; font-size: 1.1rem; color: var(--text); text-decoration: none; letter-spacing: -.01em; }
.brand span { color: var(--soft); font-weight: 400; }
.bar nav { display: flex; align-items: center; gap: 1.1rem; font-size: .9rem; }
.bar nav a { color: var(--soft); text-decoration: none; padding: .4rem 0; }
.bar nav a:hover { color: var(--text); }

button { font: inherit; font-size: .92rem; font-weight: 550; cursor: pointer; min-height: 2.5rem; padding: 0 1.1rem; border-radius: 8px; border: 1px solid var(--text); background: var(--text); color: var(--ground); }
button:hover { opacity: .88; }
button.quiet { background: transparent; color: var(--text); border-color: var(--line); font-weight: 450; }
button.quiet:hover { opacity: 1; border-color: var(--soft); }
.bar button { min-height: 2.1rem; padding: 0 .8rem; font-size: .85rem; }

main { max-width: 58rem; margin: 0 auto; padding: 2.5rem 1.25rem 5rem; }
h1 { font-size: 1.75rem; line-height: 1.25; letter-spacing: -.02em; font-weight: 650; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; letter-spacing: -.01em; font-weight: 620; margin: 2.75rem 0 .75rem; }
h2 span { font-weight: 400; color: var(--soft); margin-left: .25rem; font-size: .92rem; }
.soft { color: var(--soft); }
.lead { margin-top: .35rem; color: var(--soft); display: flex; flex-wrap: wrap; gap: .1rem .9rem; }
.health { color: var(--green); } .health::before { content: "●"; font-size: .7em; vertical-align: .1em; margin-right: .45em; }
.health.bad { color: var(--red); }

.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px; }
form.card, section#trouble { max-width: 31rem; margin: 3.5rem auto 0; padding: 2rem; }
form h1, #trouble h1 { font-size: 1.35rem; margin-bottom: .5rem; }
form p, #trouble p { color: var(--soft); font-size: .95rem; }
form label { display: block; font-weight: 550; font-size: .9rem; margin: 1.5rem 0 .4rem; }
.field { display: flex; gap: .6rem; }
input { flex: 1; min-width: 0; font: inherit; font-size: 1rem; min-height: 2.5rem; padding: 0 .8rem; color: var(--text); background: var(--ground); border: 1px solid var(--soft); border-radius: 8px; }
input[aria-invalid=true] { border-color: var(--red); }
input::placeholder { color: var(--soft); }
form .wrong { color: var(--red); } form .wrong:not(:empty) { margin-top: .6rem; }
form .hint { margin-top: 1.5rem; padding-top: 1.1rem; border-top: 1px solid var(--line); font-size: .88rem; }
.hint code { display: inline-block; }
.hint code, dd code, noscript code { background: var(--code); border-radius: 4px; padding: .1em .35em; }
.choices { display: flex; flex-wrap: wrap; gap: .6rem; margin-top: 1.5rem; }
.asking { color: var(--soft); text-align: center; margin-top: 6rem; }
@media (prefers-reduced-motion: no-preference) {
  .asking { animation: appear .3s .15s both; } @keyframes appear { from { opacity: 0; } }
}

.figures { display: grid; grid-template-columns: repeat(2, 1fr); margin-top: 1.75rem; overflow: hidden; }
.figures > div { padding: .95rem 1.15rem; box-shadow: 0 0 0 .5px var(--line); }
.figures dt { color: var(--soft); font-size: .84rem; }
.figures dd { font-size: 1.2rem; font-weight: 600; letter-spacing: -.01em; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.figures dd small { font-size: .84rem; font-weight: 400; color: var(--soft); letter-spacing: 0; }

.warnings { background: var(--amber-ground); border: 1px solid var(--amber-line); border-radius: 12px; padding: 1.1rem 1.25rem 1.2rem; margin-top: 1.25rem; }
.warnings h2 { margin: 0; color: var(--amber); font-size: 1rem; }
.warnings h2::before { content: "!"; display: inline-grid; place-items: center; width: 1.25rem; height: 1.25rem; margin-right: .6rem; border-radius: 50%; border: 1.5px solid; font-size: .8rem; font-weight: 700; }
.warnings li { padding: .7rem 0 0 1.9rem; }
.warnings b { font-weight: 600; display: block; }

.rows > div { display: grid; gap: .1rem 1.5rem; padding: .75rem 1.15rem; border-top: 1px solid var(--line); }
.rows > div:first-child { border-top: 0; }
.rows dt { font-weight: 550; overflow-wrap: anywhere; }
.rows dd { color: var(--soft); font-size: .94rem; overflow-wrap: anywhere; }
.rows .amber { color: var(--amber); }
.tick::before, .cross::before { display: inline-block; width: 1.4rem; font-weight: 700; }
.tick::before { content: "✓"; color: var(--green); } .cross::before { content: "–"; color: var(--amber); }
.tag { display: inline-block; font-size: .75rem; font-weight: 500; color: var(--soft); border: 1px solid var(--line); border-radius: 99px; padding: 0 .55rem; margin-left: .25rem; vertical-align: .1em; }
.note { color: var(--soft); font-size: .9rem; margin-top: .75rem; }
footer { margin-top: 3.5rem; color: var(--soft); font-size: .85rem; }

@media (min-width: 44rem) {
  .figures { grid-template-columns: repeat(4, 1fr); }
  .rows > div { grid-template-columns: 15rem 1fr; align-items: baseline; }
}
@media (max-width: 27rem) {
  .bar nav { gap: .9rem; } .bar nav a[href="/openapi.json"] { display: none; }
  main { padding-top: 1.75rem; } form.card, section#trouble { padding: 1.4rem; margin-top: .5rem; }
  .figures > div { padding: .8rem .9rem; } .figures dd { font-size: 1.05rem; }
}
`
