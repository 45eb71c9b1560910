/** The syntax highlighter, loaded on first use. Returns elements, never HTML. */
import bash from 'highlight.js/lib/languages/bash'
import javascript from 'highlight.js/lib/languages/javascript'
import json from 'highlight.js/lib/languages/json'
import markdown from 'highlight.js/lib/languages/markdown'
import python from 'highlight.js/lib/languages/python'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import { createLowlight } from 'lowlight'
import type { ReactNode } from 'react'
import type { Language } from './code.tsx'

const lowlight = createLowlight({ bash, javascript, json, markdown, python, typescript, xml })

export function highlight(text: string, language: Exclude<Language, 'plain'>): ReactNode {
  return lowlight.highlight(language, text).children.map(toElement)
}

type Node = ReturnType<typeof lowlight.highlight>['children'][number]

function toElement(node: Node, i: number): ReactNode {
  if (node.type === 'text') return node.value
  if (node.type !== 'element') return null
  const names = node.properties.className
  return (
    <span key={i} className={Array.isArray(names) ? names.join(' ') : undefined}>
      {node.children.map(toElement)}
    </span>
  )
}
