-- Strikes are deleted by their age.
CREATE INDEX strikes_by_time ON strikes (at);
