/** The display of tool calls: icon, title, and code or arguments. */
import type { Language } from '../ui/code.tsx'
import type { IconName } from '../ui/icon.tsx'

export interface ToolLabel {
  readonly icon: IconName
  readonly title: string
  readonly code?: { readonly text: string; readonly language: Language }
  /** The arguments that the title and the code do not show. */
  readonly args?: Readonly<Record<string, unknown>>
}

export function toolLabel(name: string, args: Readonly<Record<string, unknown>>): ToolLabel {
  const text = (key: string) => (typeof args[key] === 'string' ? (args[key] as string) : undefined)
  switch (name) {
    case 'code_execution': {
      const language = (text('language') ?? 'python') as Language
      return {
        icon: language === 'bash' ? 'terminal' : 'code',
        title: `Run ${language}${args.background === true ? ' in the background' : ''}`,
        code: { text: text('code') ?? '', language },
      }
    }
    case 'job': {
      const action = args.kill === true ? 'End' : text('input') === undefined ? 'Wait for' : 'Write to'
      return text('id') === undefined
        ? { icon: 'terminal', title: 'List jobs' }
        : { icon: 'terminal', title: `${action} ${text('id')}`, args: without(args, 'id', 'kill') }
    }
    case 'file_read':
      return { icon: 'file', title: `Read ${text('path') ?? 'a file'}`, args: without(args, 'path') }
    case 'file_write':
      return {
        icon: 'edit',
        title: `Write ${text('path') ?? 'a file'}`,
        code: Array.isArray(args.edits)
          ? { text: args.edits.map(editText).join('\n\n'), language: 'plain' }
          : { text: text('content') ?? '', language: languageOf(text('path')) },
      }
    case 'find': {
      const what = text('pattern') === undefined ? 'files' : `“${text('pattern')}”`
      const where = [text('glob'), text('path')].filter((part) => part !== undefined)
      return { icon: 'search', title: ['Find', what, ...(where.length > 0 ? ['in', ...where] : [])].join(' ') }
    }
    case 'web_search':
      return { icon: 'search', title: `Search “${text('query') ?? ''}”`, args: without(args, 'query') }
    case 'browser':
      return {
        icon: 'globe',
        title: ['Browser:', text('action'), text('url') ?? text('text') ?? text('ref')].filter(Boolean).join(' '),
        args: without(args, 'action', 'url'),
      }
    case 'skill':
      return { icon: 'book', title: `Skill ${[text('name'), text('path')].filter(Boolean).join(': ')}` }
    default:
      return { icon: 'plug', title: name.replace('__', ' · '), args }
  }
}

/** Lines of a replacement: removed ones with `-`, new ones with `+`. */
function editText(edit: unknown): string {
  const { find, replace, all } = { ...(edit as { find?: unknown; replace?: unknown; all?: unknown } | null) }
  const lines = (mark: string, text: unknown) =>
    typeof text === 'string' && text !== '' ? text.split('\n').map((line) => `${mark} ${line}`) : []
  return [...(all === true ? ['Every occurrence:'] : []), ...lines('-', find), ...lines('+', replace)].join('\n')
}

export function languageOf(name: string | undefined): Language {
  const ending = name?.slice(name.lastIndexOf('.') + 1).toLowerCase() ?? ''
  const languages: Record<string, Language> = {
    py: 'python',
    js: 'javascript',
    mjs: 'javascript',
    ts: 'typescript',
    tsx: 'typescript',
    sh: 'bash',
    json: 'json',
    html: 'xml',
    xml: 'xml',
    svg: 'xml',
    md: 'markdown',
  }
  return languages[ending] ?? 'plain'
}

function without(
  args: Readonly<Record<string, unknown>>,
  ...keys: string[]
): Readonly<Record<string, unknown>> | undefined {
  const rest = Object.entries(args).filter(([key]) => !keys.includes(key))
  return rest.length > 0 ? Object.fromEntries(rest) : undefined
}
