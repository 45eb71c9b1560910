/** The layout around a page: head, top bar, table of contents, contents of the page, previous and next page. */
import { type Html, html } from './html.ts'
import type { Heading, Page } from './markdown.ts'

export interface Entry {
  readonly name: string
  readonly title: string
}

export interface Menu {
  readonly title: string
  readonly entries: readonly Entry[]
}

/** Addresses of the site's scripts and styles. */
export interface Assets {
  readonly style: string
  readonly theme: string
  readonly script: string
  readonly icon: string
}

/** Pages that list their contents in the menu and show examples beside the text. */
const WIDE = /^(?:reference|objects$|console-api$)/

export function renderLayout(name: string, page: Page, menus: readonly Menu[], assets: Assets): string {
  // The page for 404 is shown at any address below /docs, so its links are absolute.
  const base = name === '404' ? '/docs/' : ''
  const wide = WIDE.test(name)
  const entries = menus.flatMap(({ entries }) => entries)
  const at = entries.findIndex((entry) => entry.name === name)
  const onThisPage = contents(page.headings.filter(({ depth }) => depth === 2 || depth === 3))
  const title = name === 'index' ? 'Errand documentation' : `${page.title} · Errand`
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<script src="${base}${assets.theme}"></script>
<link rel="stylesheet" href="${base}${assets.style}">
<link rel="icon" href="${base}${assets.icon}">
<script type="module" src="${base}${assets.script}"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the text</a>
<header class="bar">
<a class="brand" href="${base}index.html"><img src="${base}${assets.icon}" alt="" width="24" height="24">Errand <span>docs</span></a>
<div class="tools"></div>
</header>
<div class="${wide ? 'frame wide' : 'frame'}">
<nav class="menu" aria-label="Documentation"><details><summary>Contents</summary><div>${menus.map(
    ({ title, entries }) =>
      html`<section><h2>${title}</h2><ul>${entries.map((entry) => menuItem(entry, base, name === entry.name, wide ? onThisPage : html``))}</ul></section>`,
  )}</div></details></nav>
<main id="content" tabindex="-1">
<article>${page.body}</article>
${name === '404' ? '' : turn(entries[at - 1], entries[at + 1])}
</main>
${wide || page.headings.length < 3 ? '' : html`<nav class="toc" aria-label="On this page"><h2>On this page</h2>${onThisPage}</nav>`}
</div>
</body>
</html>
`.html
}

function menuItem({ name, title }: Entry, base: string, current: boolean, below: Html): Html {
  if (!current) return html`<li><a href="${base}${name}.html">${title}</a></li>`
  return html`<li><a href="${base}${name}.html" aria-current="page">${title}</a>${below}</li>`
}

function contents(headings: readonly Heading[]): Html {
  return html`<ul>${headings.map(({ depth, id, text }) => html`<li class="depth-${depth}"><a href="#${id}">${text}</a></li>`)}</ul>`
}

function turn(before: Entry | undefined, after: Entry | undefined): Html {
  const link = (entry: Entry | undefined, rel: string, word: string) =>
    entry
      ? html`<a rel="${rel}" href="${entry.name}.html"><small>${word}</small>${entry.title}</a>`
      : html`<span></span>`
  return html`<nav class="turn" aria-label="Previous and next page">${link(before, 'prev', 'Previous')}${link(after, 'next', 'Next')}</nav>`
}
