-- Small records: version, expires_at or false, value.

-- Nil if it is damaged, or somebody else's.
local function record_of(stored)
  local is_read, record = pcall(cmsgpack.unpack, stored)
  local is_record = is_read and type(record) == 'table' and type(record[1]) == 'number'
    and (record[2] == false or type(record[2]) == 'number')
  return is_record and record or nil
end
