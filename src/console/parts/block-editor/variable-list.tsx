import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ApiError, operate } from '../../api.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { PAGES } from './address-field.tsx';

const CONTACT_FIELDS = ['firstName', 'lastName', 'email', 'phone'] as const;
/** Contacts of which the names of custom fields are read, and names that are shown. */
const READ_CONTACTS = 50;
const MAX_CUSTOM = 30;
const NAME = /^[A-Za-z_][A-Za-z0-9_.]{0,99}$/;

/** `link`: the text of a link to it; null: its value is inserted. */
interface ChosenVariable {
  name: string;
  link: string | null;
}

interface VariableListProps {
  /** Whether the text may have links. */
  isLink: boolean;
  onChoose: (variable: ChosenVariable) => void;
}

/** What can be inserted for each recipient: fields of contacts, pages of the recipient, and variables of the sender. */
export function VariableList({ isLink, onChoose }: VariableListProps) {
  const { t } = useTexts();
  const custom = useCustomFields();
  const [other, setOther] = useState('');
  const item = (name: string, label: string, link: string | null = null) => (
    <li key={name}>
      <button type="button" class="menu-item" onClick={() => onChoose({ name, link })}>
        {label}
      </button>
    </li>
  );
  return (
    <div class="variable-list">
      <VariableGroup title={t('blocks.variable.contact')}>
        {CONTACT_FIELDS.map((name) => item(name, t(`blocks.variable.${name}`)))}
      </VariableGroup>
      {custom.length > 0 && (
        <VariableGroup title={t('blocks.variable.custom')}>
          {custom.map((name) => item(`customFields.${name}`, name))}
        </VariableGroup>
      )}
      {isLink && (
        <VariableGroup title={t('blocks.pages')}>
          {PAGES.map(({ name, key }) => item(name, t(`blocks.pages.${key}`), t(`blocks.pages.${key}.link`)))}
        </VariableGroup>
      )}
      <p class="variable-title" aria-hidden="true">
        {t('blocks.variable.other')}
      </p>
      <form
        class="variable-other"
        onSubmit={(event) => {
          event.preventDefault();
          if (NAME.test(other.trim())) onChoose({ name: other.trim(), link: null });
        }}
      >
        <input
          class="input"
          aria-label={t('blocks.variable.other')}
          placeholder="orderNumber"
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          maxLength={100}
          required
          pattern="[A-Za-z_][A-Za-z0-9_.]*"
          value={other}
          onInput={({ currentTarget: { value } }) => setOther(value)}
        />
        <button type="submit" class="button small">
          {t('blocks.variable.add')}
        </button>
      </form>
    </div>
  );
}

function VariableGroup({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <>
      <p class="variable-title" aria-hidden="true">
        {title}
      </p>
      <ul class="menu-list" aria-label={title}>
        {children}
      </ul>
    </>
  );
}

/** Names of custom fields that some contacts of the account have. */
function useCustomFields(): readonly string[] {
  const { accountId } = useMember();
  const [names, setNames] = useState<readonly string[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    operate('get', '/web-setup/contacts', {
      account: accountId,
      parameters: { limit: READ_CONTACTS },
      signal: abort.signal,
    }).then(
      ({ contacts }) => {
        const found = new Set(contacts.flatMap(({ customFields }) => Object.keys(customFields ?? {})));
        setNames(
          [...found]
            .filter((name) => NAME.test(name))
            .sort()
            .slice(0, MAX_CUSTOM),
        );
      },
      (error: unknown) => {
        // Without them, their names can be entered.
        if (!abort.signal.aborted && !(error instanceof ApiError)) throw error;
      },
    );
    return () => abort.abort();
  }, [accountId]);
  return names;
}
