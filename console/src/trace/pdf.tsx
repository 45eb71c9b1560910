/**
 * A PDF, page by page, drawn on canvases: no frame, no viewer of the browser's, nothing that could be clicked. Loaded when one
 * is looked at. It is read in a worker, which may ask for nothing (http/routes/console.ts), so that a large one does not hold up the
 * page; of scripts in a PDF it runs none.
 */
import { getDocument, type PDFDocumentProxy, type PDFPageProxy, PDFWorker } from 'pdfjs-dist'
import readerUrl from 'pdfjs-dist/build/pdf.worker.min.mjs?url'
import { useEffect, useRef, useState } from 'react'
import { cx } from '../ui/cx.ts'
import { Scroller } from '../ui/scroller.tsx'
import { Skeleton } from '../ui/states.tsx'

/** Of all scripts the page's policy lets this one alone become a worker. Not all browsers have such policies. */
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
    // It takes what it is given for its own.
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
