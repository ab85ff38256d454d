import { useRef, useState } from 'preact/hooks';
import { useTexts } from '../../texts.ts';
import { Field } from '../field.tsx';
import { useEditing } from './editing.ts';
import { safeAddress } from './safe-address.ts';

/** Pages of the recipient, which a link can lead to. */
export const PAGES = [
  { name: 'unsubscribe_url', key: 'unsubscribe' },
  { name: 'preferences_url', key: 'preferences' },
  { name: 'view_url', key: 'view' },
] as const;

interface AddressFieldProps {
  label: string;
  value: string;
  /** Whether it was entered and cannot be used. */
  isWrong: boolean;
  isReadOnly?: boolean;
  onChange: (value: string) => void;
}

/** The address of a link: of a site or of mail, or of a page of the recipient. */
export function AddressField({ label, value, isWrong, isReadOnly = false, onChange }: AddressFieldProps) {
  const { t } = useTexts();
  return (
    <>
      <Field label={label} {...(isWrong ? { error: t('blocks.link.wrong') } : {})}>
        {(control) => (
          <input
            {...control}
            class="input"
            inputMode="url"
            placeholder="https://"
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            maxLength={2000}
            readOnly={isReadOnly}
            value={value}
            onInput={({ currentTarget }) => onChange(currentTarget.value)}
          />
        )}
      </Field>
      {!isReadOnly && (
        <div class="address-pages" role="group" aria-label={t('blocks.pages')}>
          {PAGES.map(({ name, key }) => (
            <button
              type="button"
              class="button small"
              key={name}
              aria-pressed={value === `{{${name}}}`}
              onClick={() => onChange(`{{${name}}}`)}
            >
              {t(`blocks.pages.${key}`)}
            </button>
          ))}
        </div>
      )}
    </>
  );
}

/** An address of a block. It is part of the design while it is entered, also if it is none yet. */
export function BlockAddress(props: { label: string; value: string; onChange: (value: string) => void }) {
  const { isReadOnly } = useEditing();
  const [entered, setEntered] = useState<string | null>(null);
  const field = useRef<HTMLDivElement>(null);
  const { label, value, onChange } = props;
  const isWrong = entered === null && value !== '' && safeAddress(value) !== value;
  return (
    <div
      ref={field}
      onFocusOut={(event) => {
        if (event.relatedTarget instanceof Node && field.current?.contains(event.relatedTarget)) return;
        const address = safeAddress(value);
        // What a person enters, such as example.com, is completed.
        if (address !== null && address !== value) onChange(address);
        setEntered(null);
      }}
    >
      <AddressField
        label={label}
        value={value}
        isWrong={isWrong}
        isReadOnly={isReadOnly}
        onChange={(next) => {
          setEntered(next);
          onChange(next);
        }}
      />
    </div>
  );
}
