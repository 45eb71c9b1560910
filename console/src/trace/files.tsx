/**
 * Input and output files of a run. Their content is never executed: images are shown from blobs, HTML in a frame without
 * scripts and origin, and everything else as text or a download.
 */
import { useQuery } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useEffect, useMemo, useState } from 'react'
import type { OutputFile, StoredInputFile } from '../api/types.gen.js'
import { IconButton } from '../ui/button.tsx'
import { Code } from '../ui/code.tsx'
import { cx } from '../ui/cx.ts'
import { bytes } from '../ui/format.ts'
import { Icon } from '../ui/icon.tsx'
import { Skeleton } from '../ui/states.tsx'
import { languageOf } from './tool-label.ts'

const Pdf = lazy(() => import('./pdf.tsx'))
const Table = lazy(() => import('./table.tsx'))

const MAX_PREVIEW_BYTES = 5_000_000
const MAX_TEXT_CHARS = 200_000

export function isImage({ mimeType }: OutputFile): boolean {
  return /^image\/(png|jpeg|gif|webp|avif|svg\+xml)$/.test(mimeType)
}

function isPdf({ mimeType }: OutputFile): boolean {
  return mimeType === 'application/pdf'
}

function isText({ mimeType, name }: OutputFile): boolean {
  return /^text\/|json|xml|yaml|javascript|csv/.test(mimeType) || languageOf(name) !== 'plain'
}

export function Files({ files }: { readonly files: readonly OutputFile[] }) {
  return (
    <ul aria-label="Files" className="grid gap-3 lg:grid-cols-2">
      {files.map((file) => (
        <li key={file.name} className={cx('min-w-0', files.length === 1 && 'lg:col-span-2')}>
          <FileCard file={file} />
        </li>
      ))}
    </ul>
  )
}

function FileCard({ file }: { readonly file: OutputFile }) {
  const shown = file.size <= MAX_PREVIEW_BYTES && (isImage(file) || isPdf(file) || isText(file))
  const [open, setOpen] = useState(isImage(file))
  return (
    <div className="overflow-hidden rounded-lg border bg-card">
      <div className="flex items-center gap-2.5 pl-3 pr-1 h-10">
        <Icon name={isImage(file) ? 'image' : 'file'} className="text-soft" />
        <span className="min-w-0 flex-1 truncate font-medium" title={file.name}>
          {file.name}
        </span>
        <span className="text-small text-faint tabular-nums">{bytes(file.size)}</span>
        {shown && (
          <IconButton
            icon={open ? 'down' : 'right'}
            label={`${open ? 'Hide' : 'Preview'} ${file.name}`}
            aria-expanded={open}
            size="small"
            onClick={() => setOpen(!open)}
          />
        )}
        <a
          href={local(file)}
          download
          title="Download"
          aria-label={`Download ${file.name}`}
          className="inline-flex size-7 items-center justify-center rounded-md text-soft hover:bg-hover hover:text-text"
        >
          <Icon name="download" />
        </a>
      </div>
      {open && <FilePreview file={file} className="border-t" />}
    </div>
  )
}

type RunFile = OutputFile | StoredInputFile

/** The input files of a run. */
export function GivenFiles({ files, right }: { readonly files: readonly StoredInputFile[]; readonly right?: boolean }) {
  if (files.length === 0) return null
  return (
    <ul aria-label="Input files" className={cx('flex flex-wrap gap-2', right && 'justify-end')}>
      {files.map((file) => (
        <li key={file.name} className="min-w-0">
          <a
            href={local(file)}
            download
            aria-label={`Download ${file.name}`}
            className="flex h-7 items-center gap-2 rounded-md border bg-card px-2 text-small hover:border-line-strong hover:bg-hover"
          >
            <Icon name="file" className="text-soft" />
            <span className="max-w-60 truncate">{file.name}</span>
            <span className="text-faint tabular-nums">{bytes(file.size)}</span>
          </a>
        </li>
      ))}
    </ul>
  )
}

/** A signed URL without its origin, because this browser may reach the server by another one. */
function local(file: RunFile): string {
  const { pathname, search } = new URL(file.url, location.origin)
  return pathname + search
}

export async function fileBytes(file: RunFile): Promise<Uint8Array<ArrayBuffer>> {
  const response = await fetch(local(file))
  if (!response.ok) throw new Error('The link has expired. Reload the page to get a new one.')
  return new Uint8Array(await response.arrayBuffer())
}

export function FilePreview({ file, className }: { readonly file: OutputFile; readonly className?: string }) {
  const content = useQuery({
    queryKey: ['file', file.sha256],
    queryFn: () => fileBytes(file),
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (content.error) return <p className={cx('p-3 text-small text-red', className)}>{content.error.message}</p>
  if (!content.data)
    return (
      <div className={className}>
        <Skeleton className="h-72" />
      </div>
    )
  if (isImage(file)) return <Picture file={file} content={content.data} className={className} />
  if (isPdf(file)) {
    return (
      <Suspense fallback={<Skeleton className="h-96" />}>
        <Pdf content={content.data} name={file.name} className={cx('h-96', className)} />
      </Suspense>
    )
  }
  return <TextPreview file={file} content={content.data} className={className} />
}

interface PreviewProps {
  readonly file: OutputFile
  readonly content: Uint8Array<ArrayBuffer>
  readonly className?: string
}

/** In an img element, an SVG runs no scripts and loads nothing. */
function Picture({ file, content, className }: PreviewProps) {
  return (
    <div className={cx('flex h-72 items-center justify-center bg-[#fff] p-3', className)}>
      <img src={useBlob(content, file.mimeType)} alt={file.name} className="max-h-full max-w-full object-contain" />
    </div>
  )
}

function TextPreview({ file, content, className }: PreviewProps) {
  const text = useMemo(() => new TextDecoder().decode(content).slice(0, MAX_TEXT_CHARS), [content])
  const shape = shapeOf(file)
  const [source, setSource] = useState(false)
  const code = <Code text={text} language={languageOf(file.name)} label={file.name} className="h-72 bg-code p-3" />
  const shaped: Record<Shape, () => ReactNode> = {
    page: () => <Frame title={file.name} content={content} />,
    table: () => (
      <Suspense fallback={<Skeleton className="h-72" />}>
        <Table text={text} name={file.name} className="h-72" />
      </Suspense>
    ),
  }
  return (
    <div className={className}>
      {shape && (
        <div className="flex justify-end border-b px-2 py-1">
          <button
            type="button"
            onClick={() => setSource(!source)}
            className="rounded px-1.5 text-small text-soft hover:text-text"
          >
            {source ? `Show ${shape}` : 'Show source'}
          </button>
        </div>
      )}
      {shape && !source ? shaped[shape]() : code}
    </div>
  )
}

type Shape = 'page' | 'table'

function shapeOf({ mimeType, name }: OutputFile): Shape | undefined {
  if (mimeType === 'text/html') return 'page'
  return /\.(csv|tsv)$/i.test(name) ? 'table' : undefined
}

/** Without scripts and origin, and under the console's CSP, so the page's own styles don't apply. */
function Frame({ title, content }: { readonly title: string; readonly content: Uint8Array<ArrayBuffer> }) {
  return <iframe title={title} sandbox="" src={useBlob(content, 'text/html')} className="h-72 w-full bg-[#fff]" />
}

function useBlob(content: Uint8Array<ArrayBuffer>, type: string): string {
  const url = useMemo(() => URL.createObjectURL(new Blob([content], { type })), [content, type])
  useEffect(() => () => URL.revokeObjectURL(url), [url])
  return url
}
