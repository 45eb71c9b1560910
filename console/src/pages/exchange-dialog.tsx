/** The exact request and response of a run. */
import type { Interaction } from '../api/types.gen.js'
import { CodeBlock } from '../ui/code.tsx'
import { Modal } from '../ui/layer.tsx'
import { requestOf } from './interaction.tsx'

export default function ExchangeDialog({
  interaction,
  onClose,
}: {
  readonly interaction: Interaction
  readonly onClose: () => void
}) {
  return (
    <Modal open wide onClose={onClose} title="Request and response" about="As the API has them.">
      <div className="grid gap-4">
        <CodeBlock
          title="POST /v1beta/interactions"
          language="json"
          text={JSON.stringify(requestOf(interaction), null, 2)}
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
