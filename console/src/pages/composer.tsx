/** The input of an instruction and its files. Enter sends it; Shift+Enter adds a line. */
import { type DragEvent, type ReactNode, useRef, useState } from 'react'
import { base64 } from '../ui/base64.ts'
import { Button, IconButton } from '../ui/button.tsx'
import { cx } from '../ui/cx.ts'
import { bytes } from '../ui/format.ts'
import { Icon } from '../ui/icon.tsx'
import { toast } from '../ui/toast.tsx'

export interface Attached {
  readonly name: string
  readonly size: number
  /** Base64. */
  readonly content: string
}

interface ComposerProps {
  readonly instruction: string
  readonly onInstruction: (text: string) => void
  readonly files: readonly Attached[]
  readonly onFiles: (files: readonly Attached[]) => void
  readonly busy: boolean
  /** False for viewers. */
  readonly mayRun: boolean
  /** The instruction continues a conversation. */
  readonly continues: boolean
  readonly onRun: () => void
  readonly stop: ReactNode
}

/** The API's limit for inline files, all together. */
export const MAX_ATTACHED_BYTES = 10 * 1024 * 1024

export function Composer({
  instruction,
  onInstruction,
  files,
  onFiles,
  busy,
  mayRun,
  continues,
  onRun,
  stop,
}: ComposerProps) {
  const [over, setOver] = useState(false)
  const chooser = useRef<HTMLInputElement>(null)
  const ready = instruction.trim() !== '' && !busy && mayRun

  const placeholder = !mayRun
    ? 'Viewers can’t start runs.'
    : over
      ? 'Drop files here'
      : continues
        ? 'Continue the conversation…'
        : 'Describe a task…'

  async function add(list: FileList | null) {
    const chosen = [...(list ?? [])]
    const all = [...files.map(({ size }) => size), ...chosen.map(({ size }) => size)].reduce(
      (sum, size) => sum + size,
      0,
    )
    if (all > MAX_ATTACHED_BYTES)
      return toast(
        `Attachments are limited to ${bytes(MAX_ATTACHED_BYTES)} in total. Send larger files by URL through the API.`,
        true,
      )
    const read = await Promise.all(
      chosen.map(async (file) => ({ name: file.name, size: file.size, content: await base64(file) })),
    )
    onFiles([...files.filter(({ name }) => !read.some((file) => file.name === name)), ...read])
  }
  const onDrag = (event: DragEvent) => {
    if (!mayRun || !event.dataTransfer.types.includes('Files')) return
    event.preventDefault()
    setOver(event.type !== 'dragleave' && event.type !== 'drop')
    if (event.type === 'drop') add(event.dataTransfer.files)
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping files is a shortcut for the button beside it.
    <div onDragOver={onDrag} onDragLeave={onDrag} onDrop={onDrag} className="shrink-0 px-4 pb-4">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (ready) onRun()
        }}
        className={cx(
          'mx-auto max-w-3xl rounded-xl border border-line-strong bg-card transition-colors focus-within:border-faint',
          over && '!border-accent bg-accent-soft',
        )}
      >
        {files.length > 0 && <AttachedFiles files={files} onFiles={onFiles} />}
        <textarea
          aria-label="Instruction"
          rows={2}
          value={instruction}
          disabled={!mayRun}
          placeholder={placeholder}
          onChange={(event) => onInstruction(event.target.value)}
          onPaste={(event) => event.clipboardData.files.length > 0 && add(event.clipboardData.files)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
            event.preventDefault()
            if (ready) onRun()
          }}
          className="block field-sizing-content max-h-60 min-h-16 w-full resize-none bg-transparent px-3.5 pt-3 text-[0.875rem] leading-6 outline-none focus-visible:outline-none"
        />
        <div className="flex items-center gap-2 px-2 pb-2">
          <IconButton icon="attach" label="Attach files" disabled={!mayRun} onClick={() => chooser.current?.click()} />
          <input
            ref={chooser}
            type="file"
            multiple
            hidden
            aria-label="Files"
            onChange={(event) => {
              add(event.target.files)
              event.target.value = ''
            }}
          />
          <span className="flex-1 truncate text-small text-faint max-sm:invisible">
            Enter to run · Shift+Enter for a new line
          </span>
          {stop ?? (
            <Button type="submit" look="primary" icon="play" disabled={!ready}>
              Run
            </Button>
          )}
        </div>
      </form>
    </div>
  )
}

function AttachedFiles({ files, onFiles }: Pick<ComposerProps, 'files' | 'onFiles'>) {
  return (
    <ul aria-label="Attached files" className="flex flex-wrap gap-2 px-3 pt-3">
      {files.map((file) => (
        <li key={file.name} className="flex h-7 items-center gap-2 rounded-md bg-hover pl-2 text-small">
          <Icon name="file" className="text-soft" />
          <span className="max-w-48 truncate">{file.name}</span>
          <span className="text-faint">{bytes(file.size)}</span>
          <IconButton
            icon="close"
            size="small"
            label={`Remove ${file.name}`}
            onClick={() => onFiles(files.filter(({ name }) => name !== file.name))}
          />
        </li>
      ))}
    </ul>
  )
}
