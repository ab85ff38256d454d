import type { DataOf } from '../../operations.ts';
import { Chip, type ChipKind } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';
import './inbound.css';

type Authentication = NonNullable<DataOf<'/web-setup/inbound'>['mails'][number]['authentication']>;

/** DMARC first: only it says whether the author is the one that the mail names. */
const METHODS = ['dmarc', 'spf', 'dkim'] as const;
const KINDS = {
  pass: 'ok',
  fail: 'bad',
  softfail: 'warn',
  policy: 'warn',
  temperror: 'warn',
  permerror: 'warn',
  neutral: 'idle',
  none: 'idle',
} as const satisfies Record<Authentication['dmarc'], ChipKind>;

/** The results of authentication, each as a chip; ARC only of mail that has it. On a phone, lists show the first one. */
export function AuthenticationChips({ of: results }: { of: Authentication }) {
  const { t } = useTexts();
  const methods = results.arc === 'none' ? METHODS : ([...METHODS, 'arc'] as const);
  return (
    <span class="authentication">
      {methods.map((method) => (
        <Chip key={method} kind={KINDS[results[method]]}>
          {`${method.toUpperCase()}: ${t(`inbound.result.${results[method]}`)}`}
        </Chip>
      ))}
    </span>
  );
}
