/** The dialog with the API call as curl, TypeScript and Python. */
import { Tabs } from 'radix-ui'
import { CodeBlock } from '../ui/code.tsx'
import { Modal } from '../ui/overlay.tsx'
import { TAB_CLASS } from '../ui/tab-class.ts'
import { snippets } from './snippets.ts'

export default function CodeDialog({ body, onClose }: { readonly body: object; readonly onClose: () => void }) {
  const all = snippets(body)
  return (
    <Modal open wide onClose={onClose} title="Call the API" about="Set ERRAND_API_KEY to an API key of this project.">
      <Tabs.Root defaultValue="curl">
        <Tabs.List aria-label="Language" className="mb-3 flex gap-4 border-b">
          {all.map(({ name }) => (
            <Tabs.Trigger key={name} value={name} className={TAB_CLASS}>
              {name}
            </Tabs.Trigger>
          ))}
        </Tabs.List>
        {all.map(({ name, language, text }) => (
          <Tabs.Content key={name} value={name}>
            <CodeBlock text={text} language={language} title={name} />
          </Tabs.Content>
        ))}
      </Tabs.Root>
    </Modal>
  )
}
