/** A tool call in the trace: title, code or arguments, result, and the approval form if it waits for one. */
import { useState } from 'react'
import type { OutputFile } from '../api/types.gen.js'
import { Button } from '../ui/button.tsx'
import { Code } from '../ui/code.tsx'
import { cx } from '../ui/cx.ts'
import { Input } from '../ui/field.tsx'
import { bytes, duration } from '../ui/format.ts'
import { Icon, Spinner } from '../ui/icon.tsx'
import { FilePreview, isImage } from './files.tsx'
import type { ToolCall } from './fold.ts'
import { toolLabel } from './tool-label.ts'

interface ToolCallCardProps {
  readonly call: ToolCall
  readonly live: boolean
  readonly files: readonly OutputFile[]
  readonly onDecide?: ((step: number, approve: boolean, reason?: string) => void) | undefined
}

export function ToolCallCard({ call, live, files, onDecide }: ToolCallCardProps) {
  const { icon, title, code, args } = toolLabel(call.name, call.args)
  const [open, setOpen] = useState(true)
  const images = call.done ? files.filter((file) => isImage(file) && call.output.includes(`outputs/${file.name}`)) : []
  const isJson = /^\s*[[{]/.test(call.output) && call.done
  return (
    // biome-ignore lint/a11y/useSemanticElements: a landmark for each call would be too many.
    <div role="group" aria-label={title} className="overflow-hidden rounded-lg border bg-card">
      <h2>
        <button
          type="button"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
          className="flex w-full items-center gap-2.5 px-3 min-h-9 py-1.5 text-left hover:bg-hover"
        >
          <Icon name={icon} className="text-soft" />
          <span className="min-w-0 flex-1 truncate font-medium">{title}</span>
          <State call={call} live={live} />
          <Icon name="down" className={cx('text-faint transition-transform', !open && '-rotate-90')} />
        </button>
      </h2>
      {open && (
        <div className="border-t">
          {code && (
            <Code
              text={code.text}
              language={code.language}
              label={`Code of step ${call.step}: ${title}`}
              className="max-h-80 bg-code p-3"
            />
          )}
          {args && (
            <Code
              text={JSON.stringify(args, null, 2)}
              language="json"
              label={`Arguments of step ${call.step}: ${title}`}
              className="max-h-48 bg-code p-3"
            />
          )}
          {call.decision === 'waiting' && live && onDecide && <Decision call={call} onDecide={onDecide} />}
          {call.output !== '' && (
            <div className={cx((code || args) && 'border-t')}>
              <Code
                text={call.output}
                language={isJson ? 'json' : 'plain'}
                label={`Result of step ${call.step}: ${title}`}
                wraps
                className="max-h-72 p-3 text-soft"
              />
            </div>
          )}
          {call.full && (
            <p className="border-t px-3 py-2 text-small text-soft">
              The whole result, {bytes(call.full.bytes)}, was in the sandbox: <code>{call.full.path}</code>
            </p>
          )}
          {images.map((file) => (
            <FilePreview key={file.name} file={file} className="border-t" />
          ))}
        </div>
      )}
    </div>
  )
}

function State({ call, live }: { readonly call: ToolCall; readonly live: boolean }) {
  if (call.decision === 'denied') return <span className="text-small text-red">Denied</span>
  if (call.decision === 'waiting' && !call.done)
    return <span className="text-small font-medium text-amber">Needs approval</span>
  if (call.done) return <span className="text-small text-faint tabular-nums">{duration(call.durationMs)}</span>
  return live ? <Spinner className="text-accent" /> : <span className="text-small text-faint">Not finished</span>
}

function Decision({
  call,
  onDecide,
}: {
  readonly call: ToolCall
  readonly onDecide: NonNullable<ToolCallCardProps['onDecide']>
}) {
  const [reason, setReason] = useState('')
  return (
    <div className="grid gap-2.5 border-t bg-amber-soft p-3">
      <p className="font-medium text-amber">This call requires approval.</p>
      <div className="flex flex-wrap gap-2">
        <Input
          aria-label="Reason, for the model"
          placeholder="Reason, for the model (optional)"
          value={reason}
          onChange={(event) => setReason(event.target.value)}
          className="flex-1 basis-full sm:basis-52"
        />
        <Button look="primary" icon="check" onClick={() => onDecide(call.step, true)}>
          Approve
        </Button>
        <Button icon="close" onClick={() => onDecide(call.step, false, reason || undefined)}>
          Deny
        </Button>
      </div>
    </div>
  )
}
