/**
 * A PDF preview on canvases, without the browser's viewer and without links. Loaded on first use. The PDF is parsed in a worker,
 * which can't make requests (http/routes/console.ts), so that a large one does not block the page. Scripts in it are not run.
 */
import { getDocument, type PDFDocumentProxy, type PDFPageProxy, PDFWorker } from 'pdfjs-dist'
import readerUrl from 'pdfjs-dist/build/pdf.worker.min.mjs?url'
import { useEffect, useRef, useState } from 'react'
import { cx } from '../ui/cx.ts'
import { Scroller } from '../ui/scroller.tsx'
import { Skeleton } from '../ui/states.tsx'

/** The only script that the page's CSP allows as a worker. Not all browsers support Trusted Types. */
const reader = window.trustedTypes?.createPolicy('errand-pdf-reader', { createScriptURL: () => readerUrl })

const MAX_PAGES = 12

interface PdfProps {
  readonly content: Uint8Array<ArrayBuffer>
  readonly name: string
  readonly className?: string
}

export default function Pdf({ content, name, className }: PdfProps) {
  const [pdf, setPdf] = useState<PDFDocumentProxy | 'broken'>()
  useEffect(() => {
    const port = new Worker(reader?.createScriptURL('') ?? readerUrl, { type: 'module' })
    // pdf.js takes ownership of the buffer.
    const data = content.slice()
    const task = getDocument({ data, worker: PDFWorker.create({ port }), enableXfa: false, useWasm: false })
    task.promise.then(setPdf, () => setPdf('broken'))
    return () => {
      task.destroy().finally(() => port.terminate())
    }
  }, [content])
  if (pdf === 'broken') return <p className={cx('p-3 text-small text-soft', className)}>This PDF can’t be read.</p>
  if (!pdf) return <Skeleton className={className} />
  const shown = Math.min(pdf.numPages, MAX_PAGES)
  return (
    <Scroller label={name} className={cx('grid content-start gap-3 overflow-auto bg-hover p-3', className)}>
      {Array.from({ length: shown }, (_, i) => (
        <PdfPage key={i} pdf={pdf} number={i + 1} name={name} />
      ))}
      {pdf.numPages > shown && (
        <p className="text-small text-faint">
          The first {shown} of {pdf.numPages} pages.
        </p>
      )}
    </Scroller>
  )
}

function PdfPage({
  pdf,
  number,
  name,
}: {
  readonly pdf: PDFDocumentProxy
  readonly number: number
  readonly name: string
}) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    let stop = () => {}
    pdf
      .getPage(number)
      .then((page) => {
        if (canvas.current) stop = draw(page, canvas.current)
      })
      .catch(() => {})
    return () => stop()
  }, [pdf, number])
  return (
    <canvas
      ref={canvas}
      role="img"
      aria-label={`${name}, page ${number}`}
      className="mx-auto w-full max-w-2xl rounded border bg-[#fff]"
    />
  )
}

const WIDTH_PX = 1344

function draw(page: PDFPageProxy, canvas: HTMLCanvasElement): () => void {
  const scale = WIDTH_PX / page.getViewport({ scale: 1 }).width
  const viewport = page.getViewport({ scale })
  canvas.width = viewport.width
  canvas.height = viewport.height
  const task = page.render({ canvas, viewport })
  task.promise.catch(() => {})
  return () => task.cancel()
}
