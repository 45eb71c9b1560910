/** Code blocks. Shown as plain text first, and highlighted without a layout shift when the highlighter is loaded. */
import { type ReactNode, useEffect, useState } from 'react'
import { CopyIcon } from './copy.tsx'
import { cx } from './cx.ts'
import { Scroller } from './scroller.tsx'

export type Language = 'python' | 'javascript' | 'typescript' | 'bash' | 'json' | 'xml' | 'markdown' | 'plain'

/** Longer code is not highlighted, because that would block the page. */
const MAX_CHARS = 60_000

interface CodeProps {
  readonly text: string
  readonly language: Language
  readonly className?: string
  readonly label: string
  /** Long lines wrap instead of scrolling. */
  readonly wraps?: boolean
}

export function Code({ text, language, className, label, wraps }: CodeProps) {
  return (
    <Scroller label={label} className={cx('overflow-auto', className)}>
      <pre className="text-small leading-[1.45]">
        <code className={wraps ? 'whitespace-pre-wrap break-words' : undefined}>{useHighlighting(text, language)}</code>
      </pre>
    </Scroller>
  )
}

function useHighlighting(text: string, language: Language): ReactNode {
  const [highlighted, setHighlighted] = useState<{ readonly text: string; readonly nodes: ReactNode }>()
  useEffect(() => {
    if (language === 'plain' || text.length > MAX_CHARS) return
    let gone = false
    import('./highlight.tsx').then(({ highlight }) => {
      if (!gone) setHighlighted({ text, nodes: highlight(text, language) })
    })
    return () => {
      gone = true
    }
  }, [text, language])
  return highlighted?.text === text ? highlighted.nodes : text
}

/** Code with a title and a copy button. */
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
