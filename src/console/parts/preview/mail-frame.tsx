import { useEffect, useRef, useState } from 'preact/hooks';
import { frameAddress } from './stored-html.ts';
import './preview.css';

interface MailFrameProps {
  /** Id of the stored HTML. */
  id: string;
  title: string;
  /** The stored HTML: what width it declares. */
  html: string;
  view?: 'desktop' | 'phone';
  isDark?: boolean;
}

/** The width of the window in which mail is laid out. Most mail has 600 to 640 px, and margins. */
const DESKTOP_WIDTH = 680;
const PHONE_WIDTH = 375;
const MAX_WIDTH = 1200;
/** Added to the declared width: the margins of the body. */
const MARGINS = 40;
const DECLARED_WIDTH = /\bwidth\s*(?:=\s*["']?|:\s*)(\d{3,4})(?=["'\s>]|px)/gi;

/**
 * Stored HTML in a frame that runs no scripts and loads nothing from elsewhere. It is laid out as wide as mail needs, and
 * scaled down where the page is narrower. The frame is isolated from this page, which therefore cannot measure its content.
 */
export function MailFrame({ id, title, html, view = 'desktop', isDark = false }: MailFrameProps) {
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useEffect(() => {
    if (box.current === null) return undefined;
    const observer = new ResizeObserver(([entry]) => {
      if (entry !== undefined) setSize(entry.contentRect);
    });
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const width = view === 'phone' ? PHONE_WIDTH : Math.max(size.width, layoutWidth(html));
  const scale = size.width === 0 ? 1 : Math.min(1, size.width / width);
  return (
    <div ref={box} class={`mail-frame ${view} ${isDark ? 'dark' : ''}`}>
      <iframe
        // A new element: another address of the same one would be an entry in the history of the browser.
        key={id}
        title={title}
        sandbox=""
        src={frameAddress(id)}
        // Set by script, not as an attribute, which the policy of the page forbids.
        style={{
          width: `${width}px`,
          height: `${size.height / scale}px`,
          transform: `scale(${scale})`,
        }}
      />
    </div>
  );
}

/** The width in which the mail must be laid out, so that its widest part is not cut. */
function layoutWidth(html: string): number {
  let widest = DESKTOP_WIDTH;
  for (const [, declared] of html.matchAll(DECLARED_WIDTH)) {
    const width = Number(declared) + MARGINS;
    if (width <= MAX_WIDTH) widest = Math.max(widest, width);
  }
  return widest;
}
