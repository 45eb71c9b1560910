/** The dialog with the API request and response of a run. */
import type { Interaction, NewInteraction } from '../api/types.gen.js'
import { CodeBlock } from '../ui/code.tsx'
import { Modal } from '../ui/overlay.tsx'
import { requestOf } from './rerun.ts'

export default function RequestDialog({
  interaction,
  sent,
  onClose,
}: {
  readonly interaction: Interaction
  /** The request body, if it was sent from this page. */
  readonly sent: NewInteraction | undefined
  readonly onClose: () => void
}) {
  return (
    <Modal open wide onClose={onClose} title="Request and response" about="As sent and returned by the API.">
      <div className="grid gap-4">
        <CodeBlock
          title={sent ? 'POST /v1beta/interactions:stream' : 'Resolved request'}
          language="json"
          text={JSON.stringify(sent ? shortened(sent) : requestOf(interaction), null, 2)}
        />
        <CodeBlock
          title={`GET /v1beta/interactions/${interaction.id}`}
          language="json"
          text={JSON.stringify(interaction, null, 2)}
        />
      </div>
    </Modal>
  )
}

const SHOWN_CHARS = 120

/** The request with shortened file contents. */
function shortened(body: NewInteraction): object {
  const short = (text: string) =>
    text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}… (${text.length} characters)` : text
  return {
    ...body,
    ...(body.files && { files: body.files.map((file) => ({ ...file, content: short(String(file.content)) })) }),
  }
}
