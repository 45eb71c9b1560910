/** A model's answer as Markdown. HTML is shown as text, and images are not loaded: their URLs could leak data of the run. */
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
