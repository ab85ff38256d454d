import type { ComponentChildren } from 'preact';
import { useTexts } from '../texts.ts';
import { Icon } from './icon/icon.tsx';
import { Popover } from './popover.tsx';

/** Rare and destructive actions behind a button with three dots: of a row, or of a page. */
export function RowMenu({
  label,
  children,
}: {
  label: string;
  children: (close: () => void) => ComponentChildren;
}) {
  const { t } = useTexts();
  return (
    <Popover
      buttonClass="button ghost icon-only"
      label={t('app.actionsOf', { name: label })}
      button={<Icon name="ellipsis" />}
    >
      {children}
    </Popover>
  );
}
