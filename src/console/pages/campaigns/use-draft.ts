import { useEffect, useRef, useState } from 'preact/hooks';
import { operate } from '../../api.ts';
import { toast } from '../../parts/toast.tsx';
import { useUnsavedWarning } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import {
  CAMPAIGN,
  type CampaignResource,
  type Choices,
  createDraftSaver,
  type DraftFields,
  fieldsOf,
  isSame,
  type SaveState,
} from './draft-saver.ts';

/** A draft that saves itself. */
export interface CampaignDraft {
  fields: DraftFields;
  state: SaveState;
  rename(name: string): void;
  choose(choices: Partial<Choices>): void;
  /** Saves what is not saved; true: everything is. */
  flush(): Promise<boolean>;
  /** After a conflict: shows the fields of the other person. */
  adopt(theirs: CampaignResource): void;
  /** After a conflict: stores the own fields. */
  overwrite(theirs: CampaignResource): Promise<boolean>;
}

/**
 * The fields of a draft. They are saved after each change, when the page is left, and when it is hidden or closed. A
 * campaign that was read again replaces fields without changes of this person.
 */
export function useDraft(campaign: CampaignResource): CampaignDraft {
  const { t, errorText } = useTexts();
  const { accountId } = useMember();
  const [fields, setFields] = useState(() => fieldsOf(campaign));
  const [state, setState] = useState<SaveState>({ kind: 'saved', at: campaign.updatedAt });
  /** The newest ones, for functions of earlier renderings; `stored`: the last version that is known. */
  const newest = useRef({ fields, state, stored: campaign, isLeft: false });
  const request = { account: accountId, parameters: { campaignId: campaign.campaignId } };
  const [saver] = useState(() =>
    createDraftSaver({
      campaign,
      store: async ({ name, ...changed }, { keepalive }) => {
        // A campaign without a name keeps the last one.
        const body = name.trim() === '' ? changed : { name, ...changed };
        const { campaign: stored } = await operate('patch', CAMPAIGN, { ...request, body, keepalive });
        return stored;
      },
      read: async () => (await operate('get', CAMPAIGN, request)).campaign,
      onState: (next) => {
        newest.current.state = next;
        if (!newest.current.isLeft) return setState(next);
        // The page is left: its person still learns that the last changes are lost.
        const name = newest.current.fields.name;
        if (next.kind === 'conflict') toast(t('campaigns.conflict.left', { name }), { isBad: true });
        if (next.kind === 'failed' && !next.isRepeated)
          toast(t('campaigns.save.left', { name, reason: errorText(next.error) }), { isBad: true });
        return undefined;
      },
      onStored: (stored) => {
        newest.current.stored = stored;
      },
    }),
  );
  const show = (next: DraftFields) => {
    newest.current.fields = next;
    setFields(next);
  };
  useEffect(() => {
    const { stored, state: current } = newest.current;
    const isOther = campaign.updatedAt > stored.updatedAt && campaign.status === 'draft';
    if (!isOther || current.kind !== 'saved') return;
    newest.current.stored = campaign;
    saver.adopt(campaign);
    if (!isSame(fieldsOf(campaign), newest.current.fields)) show(fieldsOf(campaign));
  }, [campaign]);
  useEffect(() => {
    const hide = () => {
      if (document.visibilityState === 'hidden') void saver.flush(true);
    };
    const close = () => void saver.flush(true);
    const online = () => void saver.flush();
    document.addEventListener('visibilitychange', hide);
    window.addEventListener('pagehide', close);
    window.addEventListener('online', online);
    newest.current.isLeft = false;
    return () => {
      document.removeEventListener('visibilitychange', hide);
      window.removeEventListener('pagehide', close);
      window.removeEventListener('online', online);
      newest.current.isLeft = true;
      void saver.flush(true);
    };
  }, [saver]);
  useUnsavedWarning(state.kind === 'failed' || state.kind === 'conflict', t('campaigns.unsaved'));
  const change = (next: DraftFields) => {
    show(next);
    saver.change(next);
  };
  return {
    fields,
    state,
    rename: (name) => change({ ...newest.current.fields, name }),
    choose: (choices) =>
      change({
        ...newest.current.fields,
        prepared: { ...newest.current.fields.prepared, ...choices },
      }),
    flush: () => saver.flush(),
    adopt: (theirs) => {
      newest.current.stored = theirs;
      saver.adopt(theirs);
      show(fieldsOf(theirs));
    },
    overwrite: (theirs) => saver.overwrite(theirs),
  };
}
