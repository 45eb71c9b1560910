/** A model's answer as Markdown. HTML in it stays text, and no image is fetched: it could carry out what the run knows. */
import Markdown from 'markdown-to-jsx'
import type { ReactNode } from 'react'
import { Scroller } from '../ui/scroller.tsx'

export default function Answer({ text }: { readonly text: string }) {
  return (
    <div className="prose">
      <Markdown
        options={{
          disableParsingRawHTML: true,
          forceBlock: true,
          overrides: {
            img: ({ alt }: { alt?: string }) => <span>[{alt || 'image'}]</span>,
            a: ({ href, children }: { href?: string; children?: ReactNode }) => (
              <a href={href} target="_blank" rel="noreferrer noopener nofollow">
                {children}
              </a>
            ),
            pre: ({ children }: { children?: ReactNode }) => (
              <Scroller label="Code">
                <pre>{children}</pre>
              </Scroller>
            ),
          },
        }}
      >
        {text}
      </Markdown>
    </div>
  )
}
