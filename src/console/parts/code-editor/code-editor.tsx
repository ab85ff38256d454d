import { useEffect, useRef, useState } from 'preact/hooks';
import { useTexts } from '../../texts.ts';
import './code-editor.css';

interface CodeEditorProps {
  label: string;
  /** The first value; a component with another `key` shows another one. */
  value: string;
  readOnly: boolean;
  onChange: (value: string) => void;
}

/** An editor for HTML, whose code is loaded when it is shown. */
export function CodeEditor({ label, value, readOnly, onChange }: CodeEditorProps) {
  const { t } = useTexts();
  const host = useRef<HTMLDivElement>(null);
  const change = useRef(onChange);
  change.current = onChange;
  const [state, setState] = useState<'loading' | 'shown' | 'failed'>('loading');
  useEffect(() => {
    const element = host.current;
    if (element === null) return undefined;
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' });
    const report = (changed: string) => change.current(changed);
    let remove: (() => void) | null = null;
    let isOpen = true;
    import('./code-mirror.ts').then(
      ({ showCodeMirror }) => {
        if (!isOpen) return;
        remove = showCodeMirror({ root, label, value, readOnly, onChange: report });
        setState('shown');
      },
      () => setState('failed'),
    );
    return () => {
      isOpen = false;
      remove?.();
    };
  }, []);
  if (state === 'failed')
    return (
      <textarea
        class="code"
        aria-label={label}
        readOnly={readOnly}
        defaultValue={value}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    );
  return (
    <>
      {state === 'loading' && (
        <p class="loading" role="status">
          {t('app.loading')}
        </p>
      )}
      <div class="code" ref={host} />
    </>
  );
}
