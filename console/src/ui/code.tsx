/** Code as text at once, in colours as soon as the highlighter is there: nothing moves when it comes. */
import { type ReactNode, useEffect, useState } from 'react'
import { CopyIcon } from './copy.tsx'
import { cx } from './cx.ts'
import { Scroller } from './scroller.tsx'

export type Language = 'python' | 'javascript' | 'typescript' | 'bash' | 'json' | 'xml' | 'markdown' | 'plain'

/** Longer code stays plain: colouring it would hold up the page. */
const MAX_CHARS = 60_000

interface CodeProps {
  readonly text: string
  readonly language: Language
  readonly className?: string
  readonly label: string
  /** Long lines are broken, not scrolled. */
  readonly wraps?: boolean
}

export function Code({ text, language, className, label, wraps }: CodeProps) {
  return (
    <Scroller label={label} className={cx('overflow-auto', className)}>
      <pre className="text-small leading-[1.45]">
        <code className={wraps ? 'whitespace-pre-wrap break-words' : undefined}>{useColours(text, language)}</code>
      </pre>
    </Scroller>
  )
}

function useColours(text: string, language: Language): ReactNode {
  const [coloured, setColoured] = useState<{ readonly text: string; readonly nodes: ReactNode }>()
  useEffect(() => {
    if (language === 'plain' || text.length > MAX_CHARS) return
    let gone = false
    import('./highlight.tsx').then(({ highlight }) => {
      if (!gone) setColoured({ text, nodes: highlight(text, language) })
    })
    return () => {
      gone = true
    }
  }, [text, language])
  return coloured?.text === text ? coloured.nodes : text
}

/** A block of its own, with a head and a button that copies it. */
export function CodeBlock({
  text,
  language,
  title,
  className,
}: {
  readonly text: string
  readonly language: Language
  readonly title: string
  readonly className?: string
}) {
  return (
    <figure className={cx('overflow-hidden rounded-lg border bg-code', className)}>
      <figcaption className="flex items-center justify-between border-b pl-3 pr-1 h-8 text-small text-soft">
        <span className="min-w-0 truncate">{title}</span>
        <CopyIcon text={text} label={`Copy ${title}`} />
      </figcaption>
      <Code text={text} language={language} label={title} className="max-h-[32rem] p-3" />
    </figure>
  )
}
