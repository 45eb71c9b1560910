/**
 * Renders Markdown to HTML: GitHub's dialect and heading anchors, code highlighted at build time, and tabs for code blocks that
 * do the same in several languages (`<!-- tabs -->` … `<!-- /tabs -->`). Refuses HTML, except comments and `<br>`.
 */
import GithubSlugger from 'github-slugger'
import hljs from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import http from 'highlight.js/lib/languages/http'
import ini from 'highlight.js/lib/languages/ini'
import javascript from 'highlight.js/lib/languages/javascript'
import json from 'highlight.js/lib/languages/json'
import nginx from 'highlight.js/lib/languages/nginx'
import python from 'highlight.js/lib/languages/python'
import sql from 'highlight.js/lib/languages/sql'
import typescript from 'highlight.js/lib/languages/typescript'
import yaml from 'highlight.js/lib/languages/yaml'
import { Marked, type Token, type Tokens } from 'marked'
import { type Html, html, raw } from './html.ts'

for (const [name, language] of Object.entries({
  sh: bash,
  http,
  ini,
  js: javascript,
  json,
  nginx,
  python,
  sql,
  ts: typescript,
  yaml,
})) {
  hljs.registerLanguage(name, language)
}

export interface Heading {
  readonly depth: number
  readonly text: string
  readonly id: string
}

/** The part of a page under one heading, for the search. */
export interface Passage {
  readonly heading: string
  readonly id: string
  readonly text: string
  /** Its code blocks. They are searched, but rank below the text. */
  readonly code?: string
  /** Passages with the same group say the same for different languages. The search shows them as one result. */
  readonly group?: string
  readonly language?: string
}

export interface Page {
  readonly title: string
  readonly headings: readonly Heading[]
  readonly passages: readonly Passage[]
  readonly body: Html
}

/** Renders a page. `address` maps the target of a link or image to its address in the site. */
export function renderMarkdown(text: string, address: (target: string) => string): Page {
  const slugger = new GithubSlugger()
  const headings: Heading[] = []
  const passages: { heading: string; id: string; text: string; code: string }[] = []
  let tabs = 0
  const marked = new Marked({
    renderer: {
      heading({ depth, tokens }) {
        const { id } = headings[at++] as Heading
        const inner = this.parser.parseInline(tokens)
        if (depth === 1) return `<h1 id="${id}">${inner}</h1>\n`
        return `<h${depth} id="${id}">${inner} <a class="anchor" href="#${id}" aria-label="Link to this section">#</a></h${depth}>\n`
      },
      code: ({ text, lang }) => codeBlock(text, languageOf(lang)).html,
      link({ href, tokens }) {
        return `<a href="${attribute(address(href))}">${this.parser.parseInline(tokens)}</a>`
      },
      image: ({ href, text }) => `<img src="${attribute(address(href))}" alt="${attribute(text)}" loading="lazy">`,
      table(token) {
        const row = (cells: Tokens.TableCell[], tag: string) =>
          `<tr>${cells.map(({ text, tokens }) => cell(text === '' ? 'td' : tag, this.parser.parseInline(tokens))).join('')}</tr>`
        const head = token.header.some(({ text }) => text !== '') ? `<thead>${row(token.header, 'th')}</thead>` : ''
        return `<div class="table" tabindex="0" role="group" aria-label="Table"><table>${head}<tbody>${token.rows.map((cells) => row(cells, 'td')).join('')}</tbody></table></div>\n`
      },
      html({ text }) {
        if (text === '<br>') return text
        if (text.trim() === '<!-- tabs -->') return `<div class="tabs" data-tabs="${tabs++}">`
        if (text.trim() === '<!-- /tabs -->') return '</div>'
        if (/^\s*(?:<!--[\s\S]*?-->\s*)+$/.test(text)) return ''
        throw new Error(`A page must not contain HTML: ${text}`)
      },
    },
  })
  let at = 0
  const tokens = marked.lexer(text)
  for (const token of tokens) {
    const words = plain(token)
    if (token.type === 'heading') {
      const id = slugger.slug(words)
      headings.push({ depth: (token as Tokens.Heading).depth, text: words, id })
      passages.push({ heading: words, id, text: '', code: '' })
    } else {
      const passage = passages.at(-1)
      if (passage && words !== '') passage.text += `${words}\n`
      if (passage && token.type === 'code') passage.code += `${(token as Tokens.Code).text}\n`
    }
  }
  const title = headings[0]
  if (title?.depth !== 1) throw new Error('A page must begin with a heading of level 1.')
  return { title: title.text, headings, passages, body: raw(marked.parser(tokens)) }
}

function cell(tag: string, inner: string): string {
  return `<${tag}>${inner}</${tag}>`
}

/** The language of a code block: `sh run` → `sh`. The rest says how test/docs checks the block. */
function languageOf(info: string | undefined): string {
  return info?.split(' ')[0] ?? ''
}

const TAB_NAMES: Readonly<Record<string, string>> = { sh: 'curl', ts: 'TypeScript', python: 'Python' }

/** A highlighted code block. Its language is the name of its tab. */
export function codeBlock(text: string, language: string): Html {
  const highlighted = hljs.getLanguage(language)
    ? raw(hljs.highlight(text, { language, ignoreIllegals: true }).value)
    : html`${text}`
  const name = TAB_NAMES[language] ?? language
  return html`<figure class="code" data-language="${name}"><pre tabindex="0"><code>${highlighted}</code></pre></figure>
`
}

/** The visible words of a token, without code blocks. */
function plain(token: Token): string {
  if (token.type === 'html') return token.raw === '<br>' ? ' ' : ''
  if (token.type === 'code' || token.type === 'space') return ''
  if (token.type === 'table') {
    const { header, rows } = token as Tokens.Table
    return [header, ...rows].map((cells) => cells.map(({ tokens }) => tokens.map(plain).join('')).join(' ')).join('\n')
  }
  if (token.type === 'list') {
    return (token as Tokens.List).items.map(({ tokens }) => tokens.map(plain).join(' ')).join('\n')
  }
  if ('tokens' in token && token.tokens) return token.tokens.map(plain).join('')
  return 'text' in token ? unescaped(String(token.text)) : ''
}

function unescaped(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}

function attribute(text: string): string {
  return html`${text}`.html
}
